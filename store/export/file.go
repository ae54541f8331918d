package export

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// pendingFile is a file that nobody sees under its name before it is complete and on disk.
type pendingFile struct {
	*os.File
	name string
}

// temporaryName returns under which name a file is written. Engines that read folders take it for hidden.
func temporaryName(name string) string {
	dir, base := filepath.Split(name)
	return filepath.Join(dir, "."+base+".tmp")
}

// createFile begins a file, in a folder that it makes.
func createFile(name string) (*pendingFile, error) {
	dir := filepath.Dir(name)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // readers of the files are other users
		return nil, err
	}
	f, err := os.OpenFile(temporaryName(name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	return &pendingFile{f, name}, err
}

// publish completes the file: it is on disk under its name, in place of one that was there, when this returns.
func (f *pendingFile) publish() error {
	err := f.Sync()
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), f.name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return err
	}
	dir := filepath.Dir(f.name) // cluster=c/date=d: both may be new
	return errors.Join(syncDir(dir), syncDir(filepath.Dir(dir)), syncDir(filepath.Dir(filepath.Dir(dir))))
}

// abort removes what was written.
func (f *pendingFile) abort() {
	_ = f.Close()
	_ = os.Remove(f.Name())
}

// syncDir has the names in a folder on disk.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// partitionPath returns the folder of a cluster and a day, as Hive and those that follow it name one.
func partitionPath(cluster, date string) string {
	return "cluster=" + escapePartition(cluster) + "/date=" + date
}

// escapePartition writes a value as Hive does in the name of a folder.
//
// Source: FileUtils.escapePathName of Apache Hive.
func escapePartition(value string) string {
	var b strings.Builder
	for i := range len(value) {
		if c := value[i]; c < ' ' || c == 0x7f || strings.IndexByte("\"#%'*/:=?\\{[]^", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	if name := b.String(); name != "" && name != "." && name != ".." {
		return name
	}
	return strings.ReplaceAll(b.String(), ".", "%2E")
}
