// Package browser tests the web page in a real browser: every recorded incident is played and served by "evictrail demo", and a
// Chromium without a window does there what people do, with JavaScript and without.
//
//   - incidents_test.go: from the front page of each incident to loops, VMs, nodes and the raw facts behind a mark, by clicking.
//   - search_test.go, theme_test.go, keyboard_test.go, live_test.go: what else can be done with a page.
//   - layout_test.go, axe_test.go: every kind of page at the width of a desk and of a phone, for the eye and for axe-core.
//   - main_test.go, tab_test.go: the browser, the server, and what a visitor can do.
//
// No page may write an error or a warning to the console, throw, ask for what is not there, or break its own policy: each tab fails its
// test when one does. EVICTRAIL_CHROMIUM names the browser where it is not the system's; with EVICTRAIL_SCREENSHOTS the pages are
// written as pictures into that directory.
package browser
