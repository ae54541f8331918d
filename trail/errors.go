package trail

import (
	"errors"
	"fmt"
	"strings"
)

// ErrRefused is wrapped by an error that says a fact cannot be stored as it is, now or later.
var ErrRefused = errors.New("fact refused")

// ErrNotFound is wrapped by an error that says that nothing is known of what was asked for.
var ErrNotFound = errors.New("nothing found")

// NewNotFoundError returns an ErrNotFound that says that a VM or a node is not known.
func NewNotFoundError(of Subject) error {
	if of.Kind == SubjectNode {
		return fmt.Errorf("node %s: %w: `evictrail timeline` lists the nodes that are known", of.Name, ErrNotFound)
	}
	return fmt.Errorf("VM %s: %w: `evictrail timeline` lists the VMs that are known", of.Name, ErrNotFound)
}

// AmbiguousError says that a name is known in several clusters, and that one is to be chosen.
type AmbiguousError struct {
	Name     string
	Clusters []string
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s is known in several clusters: choose one of %s", e.Name, strings.Join(e.Clusters, ", "))
}

// TooLargeError says that the rows of a query have more bytes together than it allows.
type TooLargeError struct {
	Rows int // the newest so many are not too large; maybe none
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("only the newest %d rows are within the bound of bytes", e.Rows)
}
