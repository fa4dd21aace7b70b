package br

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Wire types of protobuf's encoding, as the specification numbers them.
const (
	wireVarint = 0
	wireI64    = 1
	wireBytes  = 2
	wireI32    = 5
)

var (
	errTruncated = errors.New("it ends in the middle of a field")
	errNotProto  = errors.New("it is not a protobuf message")
)

// wireField is one top-level field of a message that is being read.
type wireField struct {
	num    int
	kind   uint64 // its wire type
	value  uint64 // of a varint
	length int64  // of anything else, in bytes
	body   io.Reader
}

// want checks that a known field has its type: noise may look like any field.
func (f wireField) want(kind uint64) error {
	if f.kind != kind {
		return fmt.Errorf("%w: field %d has wire type %d", errNotProto, f.num, f.kind)
	}
	return nil
}

// message reads the whole body of a bytes field, which must not be longer than
// limit.
func (f wireField) message(limit int64) ([]byte, error) {
	if f.length > limit {
		return nil, fmt.Errorf("field %d: %w: %d bytes, more than any br writes", f.num, errNotProto, f.length)
	}
	b := make([]byte, f.length)
	_, err := io.ReadFull(f.body, b)
	return b, truncation(err)
}

// walkFields reads a message of size bytes field by field, in constant memory:
// a backup's metadata may be larger than we want to hold, and only a few fields
// of it are of interest. visit gets every field; what it leaves of a body is
// skipped.
func walkFields(r io.Reader, size int64, visit func(wireField) error) error {
	in := &io.LimitedReader{R: r, N: size}
	br := bufio.NewReaderSize(in, 32<<10)
	left := func() int64 { return in.N + int64(br.Buffered()) }
	for left() > 0 {
		tag, err := uvarint(br)
		if err != nil {
			return err
		}
		f := wireField{num: int(tag >> 3), kind: tag & 7}
		if tag>>3 == 0 || tag>>3 >= 1<<29 {
			return fmt.Errorf("%w: field number %d", errNotProto, tag>>3)
		}
		switch f.kind {
		case wireVarint:
			f.value, err = uvarint(br)
		case wireI64:
			f.length = 8
		case wireI32:
			f.length = 4
		case wireBytes:
			f.length, err = length(br)
		default:
			return fmt.Errorf("%w: wire type %d", errNotProto, f.kind)
		}
		if err != nil {
			return err
		}
		if f.length > left() {
			return errTruncated
		}
		if err := visitBody(br, f, visit); err != nil {
			return err
		}
	}
	return nil
}

func visitBody(br *bufio.Reader, f wireField, visit func(wireField) error) error {
	body := &io.LimitedReader{R: br, N: f.length}
	f.body = body
	if err := visit(f); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, body)
	if err == nil && body.N > 0 {
		err = io.ErrUnexpectedEOF
	}
	return truncation(err)
}

func length(r io.ByteReader) (int64, error) {
	n, err := uvarint(r)
	if err == nil && n > 1<<40 {
		return 0, fmt.Errorf("%w: a field of %d bytes", errNotProto, n)
	}
	return int64(n), err
}

func uvarint(r io.ByteReader) (uint64, error) {
	v, err := binary.ReadUvarint(r)
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return v, truncation(err)
	}
	return 0, fmt.Errorf("%w: %v", errNotProto, err) //nolint:errorlint // the overflow error has no name
}

// truncation says an early end in the words of this file.
func truncation(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTruncated
	}
	return err
}
