// Package ports gives each listener of a lab a port and remembers it in the lab's directory, because etcd's membership
// inside PD names peers by address: a lab that is started again must find its former ports.
package ports

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
)

// Below the range that the kernel hands out to outgoing connections, so that a port which is free when it is chosen is
// still free when it is used.
const (
	lowest  = 10000
	highest = 32000
)

// Book maps the name of a listener ("pd-1-peer") to its port.
type Book struct {
	file  string
	ports map[string]int
}

// Open reads the book of a lab's directory; a missing file is an empty book.
func Open(file string) (*Book, error) {
	b := &Book{file: file, ports: map[string]int{}}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read port book: %w", err)
	}
	if err := json.Unmarshal(data, &b.ports); err != nil {
		return nil, fmt.Errorf("parse port book %s: %w", file, err)
	}
	return b, nil
}

// Address returns "host:port" for a listener: its former port, which must be free, or a new free one.
func (b *Book) Address(name, host string) (string, error) {
	if port, known := b.ports[name]; known {
		addr := net.JoinHostPort(host, strconv.Itoa(port))
		if !free(addr) {
			return "", fmt.Errorf("port of %s: %s was used by this lab before and is taken now", name, addr)
		}
		return addr, nil
	}
	for range 200 {
		port := lowest + rand.IntN(highest-lowest)
		addr := net.JoinHostPort(host, strconv.Itoa(port))
		if free(addr) {
			b.ports[name] = port
			return addr, nil
		}
	}
	return "", fmt.Errorf("port of %s: nothing free on %s", name, host)
}

// Save writes the book.
func (b *Book) Save() error {
	data, err := json.MarshalIndent(b.ports, "", "  ")
	if err != nil {
		return fmt.Errorf("encode port book: %w", err)
	}
	if err := os.WriteFile(b.file, data, 0o644); err != nil {
		return fmt.Errorf("write port book: %w", err)
	}
	return nil
}

func free(addr string) bool {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return false
	}
	return l.Close() == nil
}
