package export

// Small bounds have few facts need several transactions and files.
func init() { factsTogether, mostRows = 7, 10 }
