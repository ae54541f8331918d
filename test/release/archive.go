package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// downloads is where a release lies once it is published.
const downloads = "https://github.com/evictrail/evictrail/releases/download"

// archive is the archive of a platform, as manifests name it.
type archive struct {
	platform
	URL    string
	SHA256 string
}

// url returns where a file of the release will be.
func (r *release) url(name string) string { return downloads + "/v" + r.version + "/" + name }

// writeArchive writes the archive of a platform.
func (r *release) writeArchive(p platform) error {
	name := r.baseName(p) + ".tar.gz"
	paths, err := r.stageFiles(p)
	if err != nil {
		return err
	}
	if err := r.writeTar(name, paths); err != nil {
		return err
	}
	sum, err := sumFile(filepath.Join(r.out, name))
	if err != nil {
		return err
	}
	r.archives = append(r.archives, archive{p, r.url(name), sum})
	return nil
}

// writeTar writes an archive of the release with files, by their names in it. The order, owners and times in it are always the same.
func (r *release) writeTar(archive string, paths map[string]string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write %s: %w", archive, err)
		}
	}()
	file, err := os.OpenFile(filepath.Join(r.out, archive), os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	zip := gzip.NewWriter(file)
	defer func() { err = errors.Join(err, zip.Close()) }()
	out := tar.NewWriter(zip)
	defer func() { err = errors.Join(err, out.Close()) }()
	for _, name := range slices.Sorted(maps.Keys(paths)) {
		if err := r.addFile(out, name, paths[name]); err != nil {
			return fmt.Errorf("add %s: %w", name, err)
		}
	}
	return nil
}

func (r *release) addFile(out *tar.Writer, name, path string) (err error) {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: 0o644, ModTime: r.time, Format: tar.FormatUSTAR,
	}
	if name == "evictrail" {
		header.Mode = 0o755
	}
	if err := out.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(out, file)
	return err
}
