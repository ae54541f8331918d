// Package mask hides secrets in text that leaves the machine: settings that are printed, and all that stands in a
// support bundle.
//
//	mask.Text("postgres://u:hunter22@db/e")          // postgres://u:xxxxx@db/e
//	m := mask.New([]string{"hunter22"})              // what is known to be secret
//	m.Mask("dial: hunter22: no such host")           // dial: xxxxx: no such host
//
// Text finds secrets by what stands around them. A Masker also hides those that are known, in the forms in which URLs,
// JSON and Kubernetes write them. More is hidden rather than less: a word after "password:" goes, whatever it is.
package mask
