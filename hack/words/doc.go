// Package words keeps the names and comments of the repository in the words of the field: its test fails with the file and line of a function whose name is one
// word, and of a house word in a comment.
package words
