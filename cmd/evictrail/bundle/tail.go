package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// ReadTail returns the last whole lines of a text, at most so many lines and bytes. A file is not read from its
// beginning.
func ReadTail(from io.Reader, lines, size int) ([]byte, error) {
	if f, is := from.(*os.File); is {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > int64(size) {
			if _, err := f.Seek(-int64(size)-1, io.SeekEnd); err != nil {
				return nil, fmt.Errorf("read its end: %w", err)
			}
		}
	}
	var tail []byte
	chunk := make([]byte, 1<<16)
	for {
		n, err := from.Read(chunk)
		tail = append(tail, chunk[:n]...)
		if len(tail) > 4*size {
			tail = append([]byte(nil), tail[len(tail)-size-1:]...)
		}
		if errors.Is(err, io.EOF) {
			return cutTail(tail, lines, size), nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// cutTail cuts the beginning off a text, up to a line that is whole.
func cutTail(text []byte, lines, size int) []byte {
	if cut := len(text) - size; cut > 0 {
		end := bytes.IndexByte(text[cut-1:], '\n')
		if end < 0 {
			return nil // a line that is longer: what is secret in it might be cut in two
		}
		text = text[cut+end:]
	}
	begin := len(text)
	if begin > 0 && text[begin-1] == '\n' {
		begin--
	}
	for range lines {
		if begin = bytes.LastIndexByte(text[:begin], '\n'); begin < 0 {
			return text
		}
	}
	return text[begin+1:]
}
