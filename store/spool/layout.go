package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// Where bbolt keeps what it begins with: two meta pages, of which that of the later transaction counts, and the page that this names, a leaf with the
// buckets. A small bucket lies in that page itself, as one more leaf.
//
// Source: go.etcd.io/bbolt internal/common page.go (Page, leafPageElement), meta.go (Meta), bucket.go (InBucket).
const (
	pageHeader = 16
	pageFlags  = 8
	pageCount  = 10
	pageIsLeaf = 0x02

	metaPageSize = 8
	metaRoot     = 16
	metaTx       = 48
	metaChecksum = 56 // of the bytes before it
	metaLength   = 64
	boltMagic    = 0xED0CDAED

	elementLength   = 16
	elementPosition = 4 // of the key, from the element on; its value follows
	elementKey      = 8
	elementValue    = 12
	elementIsBucket = 0x01

	bucketLength = 16 // of a bucket: the page of its root, zero where that follows, and a number
)

// checkLayout makes sure that what bbolt believes at once is whole. Both meta pages: bbolt is content with one, would go on from the transaction
// before the last, and nobody would know that the last is missing. And what they lead to, with which it may end the process, see leafFits.
func checkLayout(in io.ReaderAt) error {
	root, err := rootOf(in)
	if err != nil {
		return err
	}
	if !leafFits(root) {
		return fmt.Errorf("%w: the page of its buckets", errDamaged)
	}
	return nil
}

// rootOf reads the page with the buckets. Errors: errDamaged, and those of the system.
func rootOf(in io.ReaderAt) ([]byte, error) {
	first, err := metaAt(in, 0)
	if err != nil {
		return nil, err
	}
	size := int64(binary.NativeEndian.Uint32(first[metaPageSize:]))
	if size < 1024 || size > 64<<10 {
		return nil, fmt.Errorf("%w: the size of its pages", errDamaged)
	}
	second, err := metaAt(in, size)
	if err != nil {
		return nil, err
	}
	if binary.NativeEndian.Uint64(second[metaTx:]) > binary.NativeEndian.Uint64(first[metaTx:]) {
		first = second
	}
	return readAt(in, int64(binary.NativeEndian.Uint64(first[metaRoot:]))*size, size)
}

// metaAt reads the meta page that begins at an offset.
func metaAt(in io.ReaderAt, offset int64) ([]byte, error) {
	page, err := readAt(in, offset, pageHeader+metaLength)
	if err != nil {
		return nil, err
	}
	meta := page[pageHeader:]
	sum := fnv.New64a()
	_, _ = sum.Write(meta[:metaChecksum])
	if binary.NativeEndian.Uint32(meta) != boltMagic || binary.NativeEndian.Uint64(meta[metaChecksum:]) != sum.Sum64() {
		return nil, fmt.Errorf("%w: the meta page at %d", errDamaged, offset)
	}
	return meta, nil
}

// readAt reads so many bytes; where the file ends before, the rest is zero.
func readAt(in io.ReaderAt, offset, length int64) ([]byte, error) {
	page := make([]byte, length)
	if _, err := in.ReadAt(page, offset); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return page, nil
}

// leafFits tells whether no element of a leaf page leads out of it, nor of the buckets that lie in it. bbolt does not look. Most pages lie in a mapped file,
// where to read too far is an error, see guarded; but a bucket within a page may be copied among Go's own memory, and of a pointer that leads from there to
// where nothing was allocated the garbage collector thinks so badly that it ends the process, which nobody can recover from.
func leafFits(page []byte) bool {
	if len(page) < pageHeader || binary.NativeEndian.Uint16(page[pageFlags:]) != pageIsLeaf {
		return false
	}
	length := uint64(len(page))
	for i := range uint64(binary.NativeEndian.Uint16(page[pageCount:])) {
		at := pageHeader + i*elementLength
		if at+elementLength > length {
			return false
		}
		element := page[at:]
		value := at + uint64(binary.NativeEndian.Uint32(element[elementPosition:])) + uint64(binary.NativeEndian.Uint32(element[elementKey:]))
		end := value + uint64(binary.NativeEndian.Uint32(element[elementValue:]))
		if end > length {
			return false
		}
		if binary.NativeEndian.Uint32(element)&elementIsBucket == 0 {
			continue
		}
		bucket := page[value:end]
		if len(bucket) < bucketLength {
			return false
		}
		if binary.NativeEndian.Uint64(bucket) == 0 && !leafFits(bucket[bucketLength:]) {
			return false
		}
	}
	return true
}
