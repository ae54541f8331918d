package trail

import "time"

// Query asks for rows of one noun. Zero fields ask for everything.
type Query struct {
	Cluster   string
	Namespace string
	VMI       string
	Node      string
	Since     time.Time // inclusive
	Until     time.Time // exclusive
	Limit     int       // the newest that many; 0: all
}
