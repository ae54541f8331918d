// Package terminal runs evictrail on a pseudo-terminal, as a person at a keyboard does.
package terminal
