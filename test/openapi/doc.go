// Package openapi holds the OpenAPI document against a library of others and against a server: the document is valid, each
// route that it has can be asked as it says, and what comes is what it says: status, headers, body, also of errors.
package openapi
