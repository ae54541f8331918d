// Package leaktest fails the tests of a package where a goroutine of ours stays behind. A stack shows whose it is: ours has one of our functions
// in it, or was started by one. Every package that starts goroutines calls it from its TestMain, by way of storetest where it needs a database.
//
//	func TestMain(m *testing.M) { leaktest.Main(m) }
package leaktest
