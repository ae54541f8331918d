package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"math"
)

// form says what a frame holds.
type form byte

const (
	formFact  form = 'f' // a fact: trail.WriteFact
	formSign  form = 's' // a sign of life: trail.Sign as JSON
	formKnown form = 'k' // what is known beside facts: known as JSON
	formState form = 'a' // what the Tracker resumes from, of one aspect of one object: trail.WriteFact of trail.Fact.State
	formBase  form = 'b' // the first and the last frame of a file of states
	formMark  form = 'm' // mark as JSON
)

// frame is how everything lies on disk. It says by itself what it is and whether it is whole, so that it is found also behind damage.
type frame struct {
	form    form
	seq     uint64 // of a fact and of the state that it brought, its number; of a sign, that of the next fact; of a base, see base
	key     string // of a fact whose object is remembered, and of a state: see stateKey; else empty
	payload []byte
}

// The header: magic with the version of the format, CRC-32C of all that follows it, length of the payload, length of the key, form, number. Key and payload
// follow.
const (
	magic      = "evS\x02"
	headerSize = len(magic) + 4 + 4 + 2 + 1 + 8
	keyMax     = math.MaxUint16 // bytes
	payloadMax = 16 << 20       // bytes: a longer one is no frame of ours
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// size returns the bytes of the frame on disk.
func (f frame) size() int64 { return int64(headerSize + len(f.key) + len(f.payload)) }

// appendTo appends the frame to out as it lies on disk.
func (f frame) appendTo(out []byte) []byte {
	from := len(out)
	out = append(out, magic...)
	out = append(out, 0, 0, 0, 0)
	out = binary.BigEndian.AppendUint32(out, uint32(len(f.payload)))
	out = binary.BigEndian.AppendUint16(out, uint16(len(f.key)))
	out = binary.BigEndian.AppendUint64(append(out, byte(f.form)), f.seq)
	out = append(append(out, f.key...), f.payload...)
	binary.BigEndian.PutUint32(out[from+4:], crc32.Checksum(out[from+8:], castagnoli))
	return out
}

// frameSize returns the bytes of the frame that begins with header, and whether one may begin so.
func frameSize(header []byte) (int, bool) {
	if len(header) < headerSize || string(header[:len(magic)]) != magic {
		return 0, false
	}
	n := binary.BigEndian.Uint32(header[8:])
	return headerSize + int(binary.BigEndian.Uint16(header[12:])) + int(n), n <= payloadMax
}

// decodeFrame decodes the frame that raw begins with, and reports whether it is whole. Its payload shares memory with raw.
func decodeFrame(raw []byte) (frame, bool) {
	size, ok := frameSize(raw)
	if !ok || size > len(raw) || binary.BigEndian.Uint32(raw[4:]) != crc32.Checksum(raw[8:size], castagnoli) {
		return frame{}, false
	}
	payload := headerSize + int(binary.BigEndian.Uint16(raw[12:]))
	return frame{form(raw[14]), binary.BigEndian.Uint64(raw[15:]), string(raw[headerSize:payload]), raw[payload:size]}, true
}

// scanner finds the whole frames of a file in their order, and skips what is none.
type scanner struct {
	in      io.ReaderAt
	size    int64 // bytes of the file that are looked at
	at      int64 // where the next frame is looked for
	skipped int64 // bytes that belong to no whole frame

	buf  []byte // bytes of the file, from base on
	base int64
}

// readAhead is how many bytes a scanner reads at once, at the least.
const readAhead = 256 << 10

// peek returns the next n bytes, fewer where the file ends before. They are valid until the next call.
func (s *scanner) peek(n int) ([]byte, error) {
	end := min(s.at+int64(n), s.size)
	if s.at < s.base || end > s.base+int64(len(s.buf)) {
		want := int(min(int64(max(n, readAhead)), s.size-s.at))
		if cap(s.buf) < want {
			s.buf = make([]byte, want)
		}
		got, err := s.in.ReadAt(s.buf[:want], s.at)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if s.buf, s.base = s.buf[:got], s.at; got < want { // somebody cut the file
			s.size = s.at + int64(got)
			end = min(end, s.size)
		}
	}
	return s.buf[s.at-s.base : end-s.base], nil
}

// nextFrame returns the next whole frame; false at the end of the file. Its payload is valid until the next call. Errors: those of reading.
func (s *scanner) nextFrame() (frame, bool, error) {
	for s.at < s.size {
		header, err := s.peek(headerSize)
		if err != nil {
			return frame{}, false, err
		}
		if size, ok := frameSize(header); ok {
			raw, err := s.peek(size)
			if err != nil {
				return frame{}, false, err
			}
			if f, ok := decodeFrame(raw); ok {
				s.at += int64(size)
				return f, true, nil
			}
		}
		if err := s.skipToFrame(); err != nil {
			return frame{}, false, err
		}
	}
	return frame{}, false, nil
}

// skipToFrame goes on to the next place where a frame may begin.
func (s *scanner) skipToFrame() error {
	ahead, err := s.peek(readAhead)
	if err != nil || len(ahead) == 0 {
		return err
	}
	step := bytes.Index(ahead[1:], []byte(magic)) + 1
	if step == 0 { // none: on to what may be the beginning of one, or the end
		step = max(1, len(ahead)-len(magic)+1)
		if s.at+int64(len(ahead)) == s.size {
			step = len(ahead)
		}
	}
	s.at += int64(step)
	s.skipped += int64(step)
	return nil
}
