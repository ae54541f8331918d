package trail

import "errors"

// ErrRefused is wrapped by an error that says a fact cannot be stored as it is, now or later.
var ErrRefused = errors.New("fact refused")
