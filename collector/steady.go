package collector

import (
	"errors"
	"net/url"
	"regexp"
)

// varying is what differs in the text of a failed request from one attempt to the next: the query of its URL, which names a timeout and a
// resourceVersion, and our end of the connection, whose port is another each time.
var varying = regexp.MustCompile(`\?[^\s"]*|[\w.:\[\]]+->`)

// stripVarying returns the error of a request that got no answer with a text that is the same at each attempt, so that it is logged once. Other errors, such as
// an answer of the API server, are returned as they are.
func stripVarying(err error) error {
	if _, failed := errors.AsType[*url.Error](err); !failed {
		return err
	}
	return &briefError{varying.ReplaceAllString(err.Error(), ""), err}
}
