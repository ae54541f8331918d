// Command site builds the documentation site: the Markdown of the repository as pages of HTML with a search, and beside it references that
// are generated from what they describe. Nothing is kept in sync by hand, and nothing of the site is in the repository.
//
//	go run ./site -out ../bin/site
//
// A Markdown file stays readable where it is: links between files work on GitHub, and the site rewrites them. Its pages need no server
// and load nothing from elsewhere.
//
//   - main.go: the command; build.go: from the repository to the files of the site
//   - themes.go: which page stands where in the navigation
//   - document.go: a Markdown file, parsed: its headings, its text by section, its links
//   - links.go: what is wrong with the links of all Markdown files; where a link leads on the site
//   - reference.go, reference_api.go: alerts, views and API as Markdown (commands: `evictrail generate cli-reference`)
//   - page.html, site.css, site.js: how a page looks, and how it searches
package main
