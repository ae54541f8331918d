// Package client asks an evictrail that runs elsewhere over HTTP. Its Client answers as the store does: the same rows in the same
// order, the same words, and the same sentinel errors.
//
//	c, err := client.New(client.Options{URL: "https://evictrail.example", TokenFile: "token"})
//	defer c.Close()
//	answer, err := c.Why(ctx, trail.Question{Of: trail.VMISubject("shop", "db-1")})
//	// answer.Paragraph says why the VM was moved, or was not
//
// client.go has the conversation, list.go gathers pages to lists, acknowledge.go writes, why.go has the rest.
package client
