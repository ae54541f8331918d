// Package migrations holds the schema migrations of evictrail's database: NNN_what.sql files, up and down in one, each
// written once and never edited after a release. Package store applies them.
package migrations
