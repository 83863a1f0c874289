package workers

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"gormapy/gocore/sys"
)

// BenchmarkRead compares copies from another process by one thread and by two.
func BenchmarkRead(b *testing.B) {
	const most = 64 << 20
	alloc := func() []byte {
		m, err := unix.Mmap(-1, 0, most, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			b.Fatal(err)
		}
		for i := range m {
			m[i] = 1
		}
		return m
	}
	if os.Getenv("BENCH_CHILD") != "" {
		fmt.Println(uintptr(unsafe.Pointer(&alloc()[0])))
		time.Sleep(time.Hour)
	}
	child := exec.Command(os.Args[0], "-test.bench=Read", "-test.run=none")
	child.Env = append(os.Environ(), "BENCH_CHILD=1")
	out, _ := child.StdoutPipe()
	if err := child.Start(); err != nil {
		b.Fatal(err)
	}
	defer child.Process.Kill()
	var from uint64
	for from == 0 {
		var word string
		fmt.Fscan(out, &word)
		fmt.Sscan(word, &from)
	}
	to := unsafe.Pointer(&alloc()[0])
	for n := 512 << 10; n <= most; n *= 2 {
		for helpers := range 2 {
			b.Run(fmt.Sprintf("%dK/%d", n>>10, helpers), func(b *testing.B) {
				b.SetBytes(int64(n))
				for range b.N {
					err := Copy(n, helpers, func(at, n int) error {
						return sys.ReadProcess(child.Process.Pid, unsafe.Add(to, at), from+uint64(at), n)
					})
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func addr(mem []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&mem[0]))) }
