package spool

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// form says what a frame holds.
type form byte

const (
	formFact  form = 'f' // in the queue: trail.WriteFact
	formSign  form = 's' // in the queue: trail.Sign as JSON
	formHole  form = 'h' // in the queue: nothing; what was there is lost
	formState form = 'a' // the last that was recorded of an aspect of an object: trail.WriteFact
	formMark  form = 'm' // where the queue begins and ends: mark as JSON
	formKnown form = 'k' // what is known of the past: known as JSON
)

// frame is how every value lies in the file. It says by itself what it is and whether it is whole, so that it is found also where nothing
// leads to it any more.
type frame struct {
	form    form
	seq     uint64 // of an entry of the queue; of a state, the entry that brought it, zero for one that the database had
	payload []byte
}

// The header: magic with the version of the format, CRC-32C of all behind it, length of the payload, form, number.
const (
	magic      = "evS\x01"
	headerSize = len(magic) + 4 + 4 + 1 + 8
	payloadMax = 64 << 20 // bytes: a longer one is no frame of ours
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errTorn = errors.New("checksum does not match")

func (f frame) encode() []byte {
	out := make([]byte, headerSize, headerSize+len(f.payload))
	copy(out, magic)
	binary.BigEndian.PutUint32(out[8:], uint32(len(f.payload)))
	out[12] = byte(f.form)
	binary.BigEndian.PutUint64(out[13:], f.seq)
	out = append(out, f.payload...)
	binary.BigEndian.PutUint32(out[4:], crc32.Checksum(out[8:], castagnoli))
	return out
}

// sizeOf gives how long a frame is whose header this is; false where it is none.
func sizeOf(header []byte) (int, bool) {
	if len(header) < headerSize || string(header[:len(magic)]) != magic {
		return 0, false
	}
	n := binary.BigEndian.Uint32(header[8:])
	return headerSize + int(n), n <= payloadMax
}

// decodeFrame reads a frame. Its payload is that of raw.
func decodeFrame(raw []byte) (frame, error) {
	size, ok := sizeOf(raw)
	if !ok || size != len(raw) || binary.BigEndian.Uint32(raw[4:]) != crc32.Checksum(raw[8:], castagnoli) {
		return frame{}, errTorn
	}
	return frame{form: form(raw[12]), seq: binary.BigEndian.Uint64(raw[13:]), payload: raw[headerSize:]}, nil
}

// keyOf is the key of an entry of the queue: keys sort as numbers do.
func keyOf(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }
