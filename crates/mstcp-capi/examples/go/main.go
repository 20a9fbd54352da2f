// Command echo sends bytes over an MSTCP connection of several streams to a server that sends them back, and says whether all came:
//
//	go run . HOST PORT STREAMS BYTES [SECRET]
//
// pkg-config must find mstcp.pc.
package main

/*
#cgo pkg-config: mstcp
#include <stdlib.h>
#include <mstcp.h>
*/
import "C"

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"unsafe"
)

const pieceBytes = 1 << 16

// Conn is an MSTCP connection as an io.ReadWriteCloser.
type Conn struct{ pointer *C.struct_mstcp_connection }

// call runs f on one thread, of which the library remembers the last error.
func call(f func() bool) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if f() {
		return nil
	}
	return errors.New(C.GoString(C.mstcp_last_error()))
}

// Dial opens a connection over this many streams.
func Dial(host string, port uint16, streams int, secret string) (*Conn, error) {
	name, key := C.CString(host), C.CString(secret)
	defer C.free(unsafe.Pointer(name))
	defer C.free(unsafe.Pointer(key))
	config := C.struct_mstcp_client_config{
		secret: (*C.uint8_t)(unsafe.Pointer(key)), secret_length: C.size_t(len(secret)),
	}
	conn := &Conn{}
	err := call(func() bool {
		conn.pointer = C.mstcp_connect(name, C.uint16_t(port), nil, C.size_t(streams), &config)
		return conn.pointer != nil
	})
	return conn, err
}

func (c *Conn) Read(bytes []byte) (int, error) {
	if len(bytes) == 0 {
		return 0, nil
	}
	var count C.ssize_t
	err := call(func() bool {
		count = C.ssize_t(C.mstcp_read(c.pointer, (*C.uint8_t)(unsafe.Pointer(&bytes[0])), C.size_t(len(bytes))))
		return count >= 0
	})
	if err == nil && count == 0 {
		return 0, io.EOF
	}
	return max(int(count), 0), err
}

func (c *Conn) Write(bytes []byte) (int, error) {
	for written := 0; written < len(bytes); {
		rest := bytes[written:]
		var count C.ssize_t
		err := call(func() bool {
			count = C.ssize_t(C.mstcp_write(c.pointer, (*C.uint8_t)(unsafe.Pointer(&rest[0])), C.size_t(len(rest))))
			return count >= 0
		})
		if err != nil {
			return written, err
		}
		written += int(count)
	}
	return len(bytes), nil
}

// CloseWrite sends the end; reading goes on.
func (c *Conn) CloseWrite() error {
	return call(func() bool { return C.mstcp_shutdown(c.pointer) == 0 })
}

// Close waits until the peer has everything.
func (c *Conn) Close() error {
	return call(func() bool { return C.mstcp_close(c.pointer) == 0 })
}

func max(a, b int) int {
	if a > b {
		return a
	}
	return b
}

func send(conn *Conn, bytes int) error {
	piece := make([]byte, pieceBytes)
	for at := range piece {
		piece[at] = byte(at)
	}
	for left := bytes; left > 0; {
		size := len(piece)
		if left < size {
			size = left
		}
		if _, err := conn.Write(piece[:size]); err != nil {
			return err
		}
		left -= size
	}
	return conn.CloseWrite()
}

func run(host string, port uint16, streams, bytes int, secret string) error {
	conn, err := Dial(host, port, streams, secret)
	if err != nil {
		return err
	}
	sent := make(chan error, 1)
	go func() { sent <- send(conn, bytes) }()
	came, piece := 0, make([]byte, pieceBytes)
	for {
		count, err := conn.Read(piece)
		for at := 0; at < count; at++ {
			if piece[at] != byte(came+at) {
				return errors.New("other bytes came back")
			}
		}
		came += count
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	if err := <-sent; err != nil {
		return err
	}
	if err := conn.Close(); err != nil {
		return err
	}
	fmt.Printf("%d bytes came back\n", came)
	if came != bytes {
		return fmt.Errorf("%d were sent", bytes)
	}
	return nil
}

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "use: echo HOST PORT STREAMS BYTES [SECRET]")
		os.Exit(2)
	}
	numbers := make([]int, 3)
	for at := range numbers {
		number, err := strconv.Atoi(os.Args[2+at])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		numbers[at] = number
	}
	secret := ""
	if len(os.Args) > 5 {
		secret = os.Args[5]
	}
	if err := run(os.Args[1], uint16(numbers[0]), numbers[1], numbers[2], secret); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
