// What the pages do beyond reading: follow what is new, choose a span of time by drawing across a chart, copy what can be pasted.
"use strict";

(() => {
  const shortest = 10_000; // milliseconds

  // Charts: drag across the lanes to look closer; the time below the pointer is shown.
  const chart = (figure) => {
    const lanes = figure.querySelector(".lanes"), plot = lanes.querySelector(".axis .plot");
    const from = Date.parse(figure.dataset.from), to = Date.parse(figure.dataset.to);
    const reading = lanes.appendChild(Object.assign(document.createElement("div"), { className: "reading", hidden: true }));
    let start = null, box = null;
    const place = (event) => {
      const area = plot.getBoundingClientRect();
      return { x: Math.min(Math.max(event.clientX - area.left, 0), area.width), width: area.width, left: area.left - lanes.getBoundingClientRect().left };
    };
    const time = (at) => from + (to - from) * at.x / at.width;
    const clear = () => { box?.remove(); start = box = null; };
    lanes.addEventListener("pointermove", (event) => {
      const at = place(event);
      reading.hidden = false;
      reading.textContent = new Date(time(at)).toISOString().slice(11, 19);
      reading.style.left = `${at.left + Math.min(at.x, at.width - 60)}px`;
      if (!start) return;
      if (!box) {
        if (Math.abs(at.x - start.x) < 6) return; // a click
        box = lanes.appendChild(Object.assign(document.createElement("div"), { className: "choose" }));
      }
      box.style.left = `${at.left + Math.min(at.x, start.x)}px`;
      box.style.width = `${Math.abs(at.x - start.x)}px`;
    });
    lanes.addEventListener("pointerleave", () => { reading.hidden = true; });
    lanes.addEventListener("pointerdown", (event) => {
      if (event.button === 0 && event.pointerType === "mouse" && event.target.closest(".plot")) start = place(event);
    });
    lanes.addEventListener("dragstart", (event) => event.preventDefault());
    addEventListener("pointerup", (event) => {
      if (!start) return;
      const ends = [time(start), time(place(event))].sort((a, b) => a - b), chosen = box !== null;
      clear();
      if (!chosen || ends[1] - ends[0] < shortest) return;
      lanes.addEventListener("click", (click) => click.preventDefault(), { capture: true, once: true }); // the drag ends on a mark
      const address = new URL(location.href);
      address.searchParams.set("from", new Date(ends[0]).toISOString());
      address.searchParams.set("to", new Date(ends[1]).toISOString());
      location.assign(address);
    });
    addEventListener("keydown", (event) => { if (event.key === "Escape") clear(); });
  };

  // copy puts the text of an element on the clipboard, and reports whether it could. Browsers have navigator.clipboard on https and on this machine alone; elsewhere
  // the text is selected, too, so that a key can copy it.
  const copy = async (element) => {
    try {
      if (navigator.clipboard) {
        await navigator.clipboard.writeText(element.textContent);
        return true;
      }
    } catch {
      // refused: as where there is none
    }
    getSelection().selectAllChildren(element);
    return document.execCommand("copy");
  };

  // Advice: a button beside what can be pasted that copies it.
  const copiedFor = 2_000; // milliseconds
  const paste = (pre) => {
    const box = Object.assign(document.createElement("div"), { className: "copyable" });
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Copy" });
    let reset = null;
    button.addEventListener("click", async () => {
      button.textContent = await copy(pre.querySelector("code")) ? "Copied" : "Selected";
      clearTimeout(reset);
      reset = setTimeout(() => { button.textContent = "Copy"; }, copiedFor);
    });
    pre.replaceWith(box);
    box.append(pre, button);
  };

  const dress = (root) => {
    root.querySelectorAll("figure.chart").forEach(chart);
    root.querySelectorAll(".paste").forEach(paste);
  };

  // Live: when something that the page shows has changed, its content is fetched again and put in place of the old one.
  const refresh = async () => {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (!answer.ok) throw new Error(`answered ${answer.status}`);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    const now = document.querySelector("main"), then = fresh.querySelector("main");
    if (now.querySelector(".choose") || now.contains(document.activeElement) && document.activeElement !== now) return false; // somebody is at work in it
    const open = [...now.querySelectorAll("details")].map((details) => details.open);
    then.querySelectorAll("details").forEach((details, i) => { details.open = open[i] ?? details.open; });
    now.replaceWith(then);
    then.classList.add("fresh");
    document.title = fresh.title;
    const asOf = document.querySelector("footer time"), later = fresh.querySelector("footer time");
    if (asOf && later) asOf.replaceWith(later);
    dress(then);
    return true;
  };

  // State: the banner is fetched again and again. Where the state has changed the content is fetched, too: what is certain has changed.
  const every = 10_000; // milliseconds
  const watchState = (banner) => {
    let lost = null;
    const look = async () => {
      try {
        const answer = await fetch(banner.dataset.from, { headers: { Accept: "text/html" } });
        if (answer.status === 401 || answer.status === 403) return; // signed out: the next page says so
        if (!answer.ok) throw new Error(`answered ${answer.status}`);
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("#recorder");
        if (fresh) {
          const other = fresh.dataset.state !== banner.dataset.state;
          if (fresh.outerHTML !== banner.outerHTML) {
            banner.replaceWith(fresh);
            banner = fresh;
          }
          if (other && document.body.dataset.live) refresh().catch(() => {});
        }
        lost = null;
      } catch {
        lost ??= new Date();
        const text = Object.assign(document.createElement("p"), { textContent: `Evictrail has not answered since ${lost.toISOString().slice(11, 19)} UTC: what this page shows is as old as that.` });
        banner.className = "recorder bad";
        banner.dataset.state = "lost";
        banner.replaceChildren(text);
      }
      setTimeout(look, every);
    };
    setTimeout(look, every);
  };

  const follow = (address) => {
    const live = document.getElementById("live");
    let waiting = null, away = false, source = null;
    const changed = () => {
      waiting ??= setTimeout(async () => {
        waiting = null;
        try {
          live.textContent = await refresh() ? `Live: changed at ${new Date().toISOString().slice(11, 19)}.` : "There is news: leave what you are in, or load the page again.";
        } catch {
          live.textContent = "There is news that could not be fetched: load the page again.";
        }
      }, 300);
    };
    const connect = () => {
      source = new EventSource(address);
      source.addEventListener("open", () => {
        const recorded = document.getElementById("recorder")?.dataset.live !== "false";
        live.textContent = recorded ? "Live: updates by itself." : "Nothing is being recorded now.";
        if (away) changed(); // events of that time are not sent again
        away = false;
      });
      source.addEventListener("changed", changed);
      source.addEventListener("error", () => {
        away = true;
        live.textContent = "Not live at the moment: trying again.";
        if (source.readyState === EventSource.CLOSED) setTimeout(connect, 5_000); // after an answer that is no stream it does not try by itself
      });
    };
    connect();
    addEventListener("pagehide", () => source.close());
  };

  dress(document);
  const banner = document.getElementById("recorder");
  if (banner) watchState(banner);
  if (document.body.dataset.live) follow(document.body.dataset.live);
})();

// Search: "/" puts the cursor into the field, and what it finds shows below it as one types. Without this the form works as well.
(() => {
  const field = document.getElementById("q");
  if (!field) return;
  const shown = 10, least = 2, pause = 200; // hits, characters, milliseconds
  const box = Object.assign(document.createElement("div"), { className: "suggestions", hidden: true });
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", "Hits");
  box.setAttribute("aria-live", "polite");
  field.form.append(box);
  let waiting = null, asking = null;
  const hide = () => {
    clearTimeout(waiting);
    asking?.abort();
    box.hidden = true;
    box.replaceChildren();
  };
  const show = async () => {
    asking?.abort();
    asking = new AbortController();
    try {
      const answer = await fetch(`${field.form.getAttribute("action")}?${new URLSearchParams(new FormData(field.form))}`, { signal: asking.signal, headers: { Accept: "text/html" } });
      if (!answer.ok) return hide(); // signed out, or too much asked: the page of the search says so
      const found = new DOMParser().parseFromString(await answer.text(), "text/html");
      const hits = [...found.querySelectorAll(".hits li")], list = document.createElement("ul");
      list.append(...hits.slice(0, shown).map((hit) => document.adoptNode(hit)));
      const note = document.createElement("p");
      note.textContent = hits.length === 0 ? "Nothing found." : hits.length > shown ? `The first ${shown} hits. Enter shows more.` : "";
      box.replaceChildren(...[list, note].filter((part) => part.textContent));
      box.hidden = false;
    } catch {
      // aborted, as the text has changed, or not answered: the form still works
    }
  };
  field.addEventListener("input", () => {
    clearTimeout(waiting);
    if (field.value.trim().length < least) hide();
    else waiting = setTimeout(show, pause);
  });
  field.form.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !box.hidden) {
      event.preventDefault(); // the text stays
      hide();
      field.focus();
    }
    const links = [...box.querySelectorAll("a")], at = links.indexOf(document.activeElement);
    if (links.length === 0 || event.key !== "ArrowDown" && event.key !== "ArrowUp" || at < 0 && document.activeElement !== field) return;
    event.preventDefault();
    (links[event.key === "ArrowDown" ? Math.min(at + 1, links.length - 1) : at - 1] ?? field).focus();
  });
  field.form.addEventListener("focusout", (event) => { if (event.relatedTarget && !field.form.contains(event.relatedTarget)) hide(); });
  addEventListener("pointerdown", (event) => { if (!field.form.contains(event.target)) hide(); });
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea")) return;
    event.preventDefault();
    field.focus();
    field.select();
  });
})();

// Times: each has both zones and its age as its title, and is written in the browser's zone where the page asks for that.
(() => {
  const local = document.documentElement.dataset.tz === "local";
  const clock = (at, timeZone) => new Intl.DateTimeFormat("sv-SE", {
    timeZone, year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit",
  }).format(at);
  const name = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const units = [[86_400, "d"], [3_600, "h"], [60, "min"], [1, "s"]];
  const age = (at) => {
    let left = Math.round(Math.abs(Date.now() - at) / 1000);
    const first = Math.max(units.findIndex(([size]) => left >= size), 0), parts = [];
    for (const [size, unit] of left === 0 ? [units.at(-1)] : units.slice(first, first + 2)) {
      parts.push(`${Math.floor(left / size)} ${unit}`);
      left %= size;
    }
    return at > Date.now() ? `in ${parts.join(" ")}` : `${parts.join(" ")} ago`;
  };
  const write = (element) => {
    const at = new Date(element.dateTime);
    if (Number.isNaN(at.getTime())) return;
    if (local) element.textContent = clock(at) + ("zone" in element.dataset ? ` ${name}` : "");
    element.title = `${clock(at, "UTC")} UTC\n${clock(at)} ${name}\n${age(at)}`;
    if (element.closest("footer") && !element.nextElementSibling) {
      element.after(Object.assign(document.createElement("small"), { textContent: ` (${age(at)})` }));
    }
  };
  const writeAll = (root) => {
    if (root.matches("time")) write(root);
    root.querySelectorAll("time").forEach(write);
  };
  if (local) document.getElementById("zone").textContent = `Times are local (${name}); sentences and pictures are in UTC.`;
  writeAll(document.body);
  new MutationObserver((changes) => { // what is new on a live page
    for (const change of changes) for (const node of change.addedNodes) if (node.nodeType === Node.ELEMENT_NODE) writeAll(node);
  }).observe(document.body, { childList: true, subtree: true });
})();
