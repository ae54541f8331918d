package move

// Chunks of a few rows, so that small histories have many.
func init() { chunkRows, deleteTogether = 40, 100 }

// Unmoved are the tables whose rows are not moved.
var Unmoved = unmoved
