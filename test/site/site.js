// The search. Pages can be read without it, and without this script.
"use strict";
(() => {
  const root = document.documentElement.dataset.root;
  const form = document.querySelector(".search"), input = form.elements.q;
  const panel = document.querySelector(".results"), status = panel.querySelector("p"), list = panel.querySelector("ul");
  const most = 30; // results that are shown
  let sections; // of all pages, once they are loaded

  const load = () => {
    if (sections) return;
    sections = [];
    const script = document.createElement("script");
    script.src = root + "search-index.js";
    script.onload = () => {
      sections = window.searchIndex.map(([address, title, heading, text]) => ({
        address, title, heading, text, in: { title: heading ? "" : title.toLowerCase(), heading: heading.toLowerCase(), text: text.toLowerCase() }, page: title.toLowerCase(),
      }));
      show();
    };
    document.head.append(script);
  };

  // rank says how well a section fits: a title counts more than a heading, that more than text, and the phrase more than its words. 0 is not
  // at all: every word must be in it, or in the title of its page, and one at least in the section itself.
  const weights = { title: 100, heading: 40, text: 1 };
  const rank = (section, words, phrase) => {
    let score = 0;
    for (const word of words) {
      let best = 0;
      for (const part in weights) {
        const at = section.in[part].indexOf(word);
        if (at >= 0) best = Math.max(best, weights[part] * (/\w/.test(section.in[part][at - 1] ?? "") ? 1 : 2)); // the beginning of a word is better
      }
      if (!best && !section.page.includes(word)) return 0;
      score += best;
    }
    for (const part in weights) {
      if (section.in[part] === phrase) score += 4 * weights[part];
      else if (words.length > 1 && section.in[part].includes(phrase)) score += 3 * weights[part];
    }
    return score;
  };

  // excerpt writes the text around the first of the words, with all of them marked.
  const excerpt = (section, words) => {
    const found = words.map(word => section.in.text.indexOf(word)).filter(at => at >= 0);
    const from = found.length ? Math.max(0, Math.min(...found) - 60) : 0;
    const text = section.text.slice(from, from + 180), out = document.createElement("small");
    const marks = new RegExp(words.map(word => word.replace(/[^\w\s]/g, "\\$&")).join("|"), "gi");
    let end = 0;
    out.append(from ? "…" : "");
    for (const match of text.matchAll(marks)) {
      const mark = document.createElement("mark");
      mark.append(match[0]);
      out.append(text.slice(end, match.index), mark);
      end = match.index + match[0].length;
    }
    out.append(text.slice(end), from + 180 < section.text.length ? "…" : "");
    return out;
  };

  const show = () => {
    const phrase = input.value.trim().toLowerCase().replace(/\s+/g, " "), words = phrase.split(" ");
    panel.hidden = !phrase;
    if (!phrase) return;
    const ranked = sections.map(section => ({ section, score: rank(section, words, phrase) })).filter(r => r.score);
    ranked.sort((a, b) => b.score - a.score);
    status.textContent = !sections.length ? "Loading" : !ranked.length ? `Nothing has all of: ${words.join(", ")}` :
      ranked.length === 1 ? "1 result" : `${ranked.length} results${ranked.length > most ? `, the first ${most}` : ""}`;
    list.replaceChildren(...ranked.slice(0, most).map(({ section }) => {
      const item = document.createElement("li"), link = document.createElement("a"), name = document.createElement("b");
      link.href = root + section.address;
      name.append(section.heading ? `${section.title}: ${section.heading}` : section.title);
      link.append(name, excerpt(section, words));
      item.append(link);
      return item;
    }));
  };

  const close = () => { input.value = ""; show(); };

  form.hidden = false;
  input.addEventListener("focus", load);
  input.addEventListener("input", () => { load(); show(); });
  form.addEventListener("submit", event => {
    event.preventDefault();
    list.querySelector("a")?.click();
  });
  list.addEventListener("click", close); // a result on this page
  document.addEventListener("click", event => { if (!event.target.closest("header")) panel.hidden = true; });
  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const links = [...list.querySelectorAll("a")], at = links.indexOf(document.activeElement);
    if (event.key === "/" && !event.target.closest("input, textarea, select")) {
      event.preventDefault();
      input.focus();
      input.select();
    } else if (event.key === "Escape" && !panel.hidden) {
      event.preventDefault();
      close();
      input.focus();
    } else if (!panel.hidden && links.length && (at >= 0 || event.target === input) && (event.key === "ArrowDown" || event.key === "ArrowUp")) {
      event.preventDefault();
      const to = at + (event.key === "ArrowDown" ? 1 : -1);
      (to < 0 ? input : links[Math.min(to, links.length - 1)]).focus();
    }
  });

  // The current page is in view in the list of all, where that scrolls.
  const pages = document.querySelector(".pages"), current = pages.querySelector("[aria-current]");
  if (current) pages.scrollTop = current.offsetTop - pages.clientHeight / 2;
})();
