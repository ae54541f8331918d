// Package client asks an evictrail that runs elsewhere over HTTP. Its Client answers as the store does: the same rows in the same
// order, the same words, and the same sentinel errors.
//
// client.go has the conversation, list.go gathers pages to lists, why.go the rest.
package client
