package tidbcfgtest

import (
	"bytes"
	"crypto/sha1"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
)

// Commands of the client.
const (
	comQuit    = 0x01
	comQuery   = 0x03
	comPing    = 0x0e
	comPrepare = 0x16
)

// Capability flags this server offers.
const (
	capProtocol41   = 1 << 9
	capSSL          = 1 << 11
	capTransactions = 1 << 13
	capSecureConn   = 1 << 15
	capPluginAuth   = 1 << 19
	capConnectAttrs = 1 << 20

	capBase = 1 | capProtocol41 | capTransactions | capSecureConn | capPluginAuth | capConnectAttrs
)

const (
	authPlugin    = "mysql_native_password"
	serverVersion = "8.0.11-TiDB-v8.5.0"
	maxPacket     = 1<<24 - 1
	statusOK      = 2 // autocommit
)

// salt is fixed: this is no server to keep secrets on.
var salt = []byte("brctl-fake-tidb-salt")

// wire is one connection's packets. Not safe for concurrent use.
type wire struct {
	net.Conn
	seq byte
}

func (w *wire) read() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(w.Conn, head[:]); err != nil {
		return nil, err
	}
	w.seq = head[3] + 1
	size := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
	if size == maxPacket {
		return nil, fmt.Errorf("packet of %d bytes is more than this server reads", size)
	}
	body := make([]byte, size)
	_, err := io.ReadFull(w.Conn, body)
	return body, err
}

func (w *wire) write(body []byte) error {
	n := len(body)
	packet := append([]byte{byte(n), byte(n >> 8), byte(n >> 16), w.seq}, body...)
	w.seq++
	_, err := w.Write(packet)
	return err
}

func (w *wire) writeOK(warnings int) error {
	return w.write([]byte{0, 0, 0, statusOK, 0, byte(warnings), byte(warnings >> 8)})
}

func (w *wire) writeEOF(warnings int) error {
	return w.write([]byte{0xfe, byte(warnings), byte(warnings >> 8), statusOK, 0})
}

func (w *wire) writeError(e *sqlError) error {
	b := []byte{0xff, byte(e.code), byte(e.code >> 8), '#'}
	b = append(b, e.state...)
	return w.write(append(b, e.message...))
}

func (w *wire) writeRows(columns []string, rows [][]string, warnings int) error {
	if err := w.write(lengthInt(nil, len(columns))); err != nil {
		return err
	}
	for _, c := range columns {
		if err := w.write(columnDefinition(c)); err != nil {
			return err
		}
	}
	if err := w.writeEOF(warnings); err != nil {
		return err
	}
	for _, row := range rows {
		var b []byte
		for _, cell := range row {
			b = lengthString(b, cell)
		}
		if err := w.write(b); err != nil {
			return err
		}
	}
	return w.writeEOF(warnings)
}

func columnDefinition(name string) []byte {
	var b []byte
	for _, s := range []string{"def", "", "", "", name, name} {
		b = lengthString(b, s)
	}
	b = append(b, 0x0c, 46, 0)            // fixed part's length; utf8mb4_bin
	b = append(b, 0xff, 0xff, 0, 0)       // column length
	return append(b, 0xfd, 0, 0, 0, 0, 0) // VAR_STRING, no flags, no decimals, filler
}

func lengthString(b []byte, s string) []byte { return append(lengthInt(b, len(s)), s...) }

func lengthInt(b []byte, n int) []byte {
	switch {
	case n < 251:
		return append(b, byte(n))
	case n < 1<<16:
		return append(b, 0xfc, byte(n), byte(n>>8))
	}
	return append(b, 0xfd, byte(n), byte(n>>8), byte(n>>16))
}

// handshake greets the client, switches to TLS when both want it, and checks
// user and password. It returns the user that logged in.
func (w *wire) handshake(id uint32, tlsConfig *tls.Config, passwords map[string]string) (string, error) {
	caps := uint32(capBase)
	if tlsConfig != nil {
		caps |= capSSL
	}
	if err := w.write(greeting(id, caps)); err != nil {
		return "", err
	}
	body, err := w.read()
	if err != nil {
		return "", err
	}
	if len(body) == 32 && binary.LittleEndian.Uint32(body)&capSSL != 0 && tlsConfig != nil {
		w.Conn = tls.Server(w.Conn, tlsConfig)
		if body, err = w.read(); err != nil {
			return "", err
		}
	}
	user, auth, err := parseLogin(body)
	if err != nil {
		return "", err
	}
	if password, known := passwords[user]; !known || !bytes.Equal(auth, scramble(password)) {
		denied := accessDenied(user)
		_ = w.writeError(denied)
		return "", denied
	}
	return user, w.writeOK(0)
}

func greeting(id, caps uint32) []byte {
	b := append([]byte{10}, serverVersion+"\x00"...)
	b = binary.LittleEndian.AppendUint32(b, id)
	b = append(b, salt[:8]...)
	b = append(b, 0, byte(caps), byte(caps>>8), 46, statusOK, 0, byte(caps>>16), byte(caps>>24), byte(len(salt)+1))
	b = append(b, make([]byte, 10)...)
	b = append(b, salt[8:]...)
	return append(b, "\x00"+authPlugin+"\x00"...)
}

// parseLogin reads a HandshakeResponse41.
func parseLogin(body []byte) (user string, auth []byte, err error) {
	const fixed = 4 + 4 + 1 + 23
	if len(body) < fixed {
		return "", nil, fmt.Errorf("login packet of %d bytes", len(body))
	}
	name, rest, found := bytes.Cut(body[fixed:], []byte{0})
	if !found || len(rest) == 0 || len(rest) < 1+int(rest[0]) {
		return "", nil, fmt.Errorf("login packet of %d bytes is cut short", len(body))
	}
	return string(name), rest[1 : 1+int(rest[0])], nil
}

// scramble is what mysql_native_password sends:
// SHA1(password) XOR SHA1(salt + SHA1(SHA1(password))).
func scramble(password string) []byte {
	if password == "" {
		return nil
	}
	stage1 := sha1.Sum([]byte(password))
	stage2 := sha1.Sum(stage1[:])
	mask := sha1.Sum(append(bytes.Clone(salt), stage2[:]...))
	for i := range stage1 {
		stage1[i] ^= mask[i]
	}
	return stage1[:]
}
