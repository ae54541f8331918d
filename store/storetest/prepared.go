package storetest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/evictrail/evictrail/migrations"
)

// preparedFor is how long a directory that was prepared for another schema is kept.
const preparedFor = 48 * time.Hour

// startPrepared starts the embedded server on a copy of a data directory that has the template already: initdb and the schema
// take longer than the tests of most packages. The first that finds none makes it, in the user's cache.
func startPrepared(ctx context.Context) (err error) {
	if server.dir, err = os.MkdirTemp("", "evictrail-test-"); err != nil {
		return err
	}
	if err := os.Chmod(server.dir, 0o755); err != nil { // as root the server runs as another user
		return err
	}
	prepared := preparedDir()
	if copyData(ctx, prepared, server.dir) == nil && startEmbedded(ctx) == nil {
		return nil
	}
	if err := emptyDir(server.dir); err != nil { // there was none, or one that is broken or of another version of Postgres
		return err
	}
	if err := startEmbedded(ctx); err != nil {
		return err
	}
	if err := makeTemplate(ctx); err != nil {
		return err
	}
	if err := stopEmbedded(); err != nil {
		return err
	}
	keepPrepared(ctx, prepared)
	return startEmbedded(ctx)
}

// preparedDir names the directory that is prepared for the present schema; its partitions are those of this month.
func preparedDir() string {
	key := sha256.New()
	for _, s := range migrations.Update(0) {
		_, _ = io.WriteString(key, s.SQL)
	}
	_, _ = io.WriteString(key, time.Now().UTC().Format("2006-01"))
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return filepath.Join(cache, "evictrail-test", "postgres", fmt.Sprintf("%s-%d", hex.EncodeToString(key.Sum(nil)[:8]), os.Getuid()))
}

// keepPrepared keeps a copy of the data of a server that was stopped, and removes those of other schemas that nobody used for
// some time. Where it cannot, the next package prepares its own.
func keepPrepared(ctx context.Context, prepared string) {
	parent := filepath.Dir(prepared)
	if os.MkdirAll(parent, 0o750) != nil {
		return
	}
	made, err := os.MkdirTemp(parent, ".making-")
	if err != nil {
		return
	}
	if copyData(ctx, server.dir, made) != nil || os.Rename(made, prepared) != nil { // another package was faster
		_ = os.RemoveAll(made)
	}
	others, _ := os.ReadDir(parent)
	for _, o := range others {
		if info, err := o.Info(); err == nil && o.Name() != filepath.Base(prepared) && time.Since(info.ModTime()) > preparedFor {
			_ = os.RemoveAll(filepath.Join(parent, o.Name()))
		}
	}
}

// copyData copies the data directories of a server from one directory to another, with who owns them.
func copyData(ctx context.Context, from, to string) error {
	found, err := filepath.Glob(filepath.Join(from, "pg*"))
	if err != nil || len(found) == 0 {
		return fmt.Errorf("no data in %s", from)
	}
	out, err := exec.CommandContext(ctx, "cp", append([]string{"-a", "--"}, append(found, to)...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("copy %s: %w: %s", from, err, strings.TrimSpace(string(out)))
	}
	return nil
}

// emptyDir removes all that is in a directory.
func emptyDir(dir string) error {
	all, err := os.ReadDir(dir)
	for _, e := range all {
		if err == nil {
			err = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
	return err
}
