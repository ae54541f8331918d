package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// sumsName is the file of the checksums, as sha256sum --check reads it.
const sumsName = "SHA256SUMS"

func sumFile(path string) (sum string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	hash := sha256.New()
	if _, err := io.Copy(hash, file); err != nil {
		return "", fmt.Errorf("read %s: %w", path, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// writeSums writes the checksums of all files in a folder, by name.
func writeSums(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var out strings.Builder
	for _, e := range entries {
		sum, err := sumFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		_, _ = fmt.Fprintf(&out, "%s  %s\n", sum, e.Name())
	}
	return writePublic(filepath.Join(dir, sumsName), out.String())
}

// compareSums returns an error that names each file that is not the same in two releases.
func compareSums(first, second string) error {
	one, err := os.ReadFile(first)
	if err != nil {
		return err
	}
	two, err := os.ReadFile(second)
	if err != nil {
		return err
	}
	if bytes.Equal(one, two) {
		return nil
	}
	differ := []string{}
	for line := range strings.Lines(string(one)) {
		if !strings.Contains(string(two), line) {
			differ = append(differ, strings.TrimSpace(line))
		}
	}
	return fmt.Errorf("made twice, and not the same; checksums of the first time:\n%s\nof the second time:\n%s",
		strings.Join(differ, "\n"), two)
}

// writePublic writes a file that everybody may read.
func writePublic(path, text string) error {
	return os.WriteFile(path, []byte(text), 0o644)
}
