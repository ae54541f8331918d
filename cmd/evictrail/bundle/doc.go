// Package bundle puts files into one archive that is sent with a bug report:
//
//	parts := []bundle.Part{{File: "schema.txt", About: "the schema", Write: writeSchema}}
//	b, err := bundle.Collect(ctx, parts, options)
//	err = b.Write(file)
//
// Each part is written by itself. One that fails is left out, or cut short, and README.txt says why; the others stay.
// Every byte goes through one function that hides secrets, errors as well. Nothing is written before all parts are
// there: they are held in memory, so each has to bound what it writes.
package bundle
