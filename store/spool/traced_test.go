package spool

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// sort is what a traced process did.
type sort int

const (
	wrote     sort = iota // data at an offset of a file
	truncated             // a file to a size
	synced                // a file or a directory: fsync or fdatasync returned without an error
	named                 // the files of the directories are others than before
	announced             // a line on standard output
)

// event is a system call that a traced process made, in the order in which they returned.
type event struct {
	sort   sort
	file   int   // wrote, truncated, synced
	offset int64 // wrote; the size for truncated
	data   []byte
	tree   map[string]node // named: files and directories by their paths below the root, which is "."
	line   string          // announced
}

// node is a file or a directory.
type node struct {
	file      int
	directory bool
}

// traced is a process whose system calls are seen: what it writes, truncates, syncs, creates, renames and removes below a directory.
//
// Nothing in the process knows of it: the calls are those of package os and of the Go runtime as they reach the kernel.
type traced struct {
	root   string
	events []event
	pid    int

	tree    map[string]node     // as the last named has it
	inodes  map[uint64]int      // files that have a name, by their inode
	next    int                 // number of the next file
	calls   map[int]call        // by thread: what it has entered and not left
	started map[int]bool        // threads that were seen
	memory  *os.File            // of the process
	status  *syscall.WaitStatus // how it ended
}

// call is a system call that a thread has entered.
type call struct {
	number uint64
	args   [6]uint64
	data   []byte
}

// The requests and stops of ptrace(2) that package syscall does not name.
const (
	ptraceExitKill       = 0x100000
	ptraceGetSyscallInfo = 0x420e
	syscallStop          = syscall.SIGTRAP | 0x80
	enteredSyscall       = 1
	leftSyscall          = 2
	waitThreads          = 0x40000000 // __WALL
	renameat2            = 316        // amd64; elsewhere package os calls renameat
)

// syscallInfo is struct ptrace_syscall_info of linux/ptrace.h, the same on all architectures.
type syscallInfo struct {
	op      uint8
	_       [3]uint8
	_       uint32
	_, _    uint64
	payload [8]uint64 // entry: number and six arguments; exit: the result, negative for an error
}

// traceSelf runs this test binary with one more variable in its environment and returns what it did to files below root.
func traceSelf(t *testing.T, root, variable string) []event {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &traced{root: root, inodes: map[uint64]int{}, calls: map[int]call{}, started: map[int]bool{}}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // of a process only the thread that began it may trace it; the thread ends with the goroutine
		done <- p.runProcess(self, variable)
	}()
	require.NoError(t, <-done)
	return p.events
}

// runProcess begins the process and follows it to its end.
func (p *traced) runProcess(self, variable string) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { _ = null.Close() }()
	p.recordNames()
	process, err := os.StartProcess(self, []string{self}, &os.ProcAttr{
		Env:   append(os.Environ(), variable, "GODEBUG=asyncpreemptoff=1"),
		Files: []*os.File{null, null, os.Stderr},
		Sys:   &syscall.SysProcAttr{Ptrace: true, Setpgid: true},
	})
	if err != nil {
		return fmt.Errorf("trace a process (needs ptrace, which the container may forbid): %w", err)
	}
	p.pid = process.Pid
	_ = process.Release()
	if _, err := syscall.Wait4(p.pid, nil, waitThreads, nil); err != nil {
		return err
	}
	if err := syscall.PtraceSetOptions(p.pid, syscall.PTRACE_O_TRACESYSGOOD|syscall.PTRACE_O_TRACECLONE|ptraceExitKill); err != nil {
		return err
	}
	if p.memory, err = os.Open(fmt.Sprintf("/proc/%d/mem", p.pid)); err != nil {
		return err
	}
	defer func() { _ = p.memory.Close() }()
	p.started[p.pid] = true
	for thread, signal := p.pid, syscall.Signal(0); ; {
		if err := syscall.PtraceSyscall(thread, int(signal)); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
		if thread, signal, err = p.waitForStop(); err != nil || p.status != nil {
			break
		}
	}
	if err == nil && (!p.status.Exited() || p.status.ExitStatus() != 0) {
		err = fmt.Errorf("traced process ended with status %d, signal %s", p.status.ExitStatus(), p.status.Signal())
	}
	return err
}

// waitForStop waits until a thread stops, and returns it with the signal that it is to be given.
func (p *traced) waitForStop() (thread int, signal syscall.Signal, err error) {
	for {
		var status syscall.WaitStatus
		thread, err = syscall.Wait4(-p.pid, &status, waitThreads, nil) // of its process group, which others' children are not in
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case err != nil:
			return 0, 0, fmt.Errorf("wait for the traced process: %w", err)
		case status.Exited() || status.Signaled():
			if thread == p.pid {
				p.status = &status
				return 0, 0, nil
			}
			continue
		case status.StopSignal() == syscallStop:
			return thread, 0, p.recordSyscallStop(thread)
		case status.StopSignal() == syscall.SIGTRAP:
			return thread, 0, nil // it began a thread
		case status.StopSignal() == syscall.SIGSTOP && !p.started[thread]:
			p.started[thread] = true
			return thread, 0, nil
		}
		return thread, status.StopSignal(), nil
	}
}

// recordSyscallStop records the system call that a thread enters or leaves.
func (p *traced) recordSyscallStop(thread int) error {
	var info syscallInfo
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PTRACE, ptraceGetSyscallInfo, uintptr(thread), unsafe.Sizeof(info), uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno == syscall.ESRCH {
		return nil // the process ended while this thread was stopped
	}
	if errno != 0 {
		return fmt.Errorf("ask which system call it is (needs Linux 5.3): %w", errno)
	}
	switch info.op {
	case enteredSyscall:
		c := call{number: info.payload[0], args: [6]uint64(info.payload[1:7])}
		if c.number == syscall.SYS_PWRITE64 || c.number == syscall.SYS_WRITE {
			c.data = make([]byte, c.args[2])
			if _, err := p.memory.ReadAt(c.data, int64(c.args[1])); err != nil {
				return fmt.Errorf("read what is written: %w", err)
			}
		}
		p.calls[thread] = c
	case leftSyscall:
		if result := int64(info.payload[0]); result >= 0 {
			p.recordCall(p.calls[thread], result)
		}
		delete(p.calls, thread)
	}
	return nil
}

// recordCall records a system call that succeeded.
func (p *traced) recordCall(c call, result int64) {
	switch c.number {
	case syscall.SYS_WRITE, syscall.SYS_PWRITE64:
		if c.number == syscall.SYS_WRITE && c.args[0] == 1 {
			p.events = append(p.events, event{sort: announced, line: strings.TrimSpace(string(c.data))})
		} else if c.number == syscall.SYS_PWRITE64 {
			p.recordFileEvent(c, event{sort: wrote, offset: int64(c.args[3]), data: c.data[:result]})
		}
	case syscall.SYS_FTRUNCATE:
		p.recordFileEvent(c, event{sort: truncated, offset: int64(c.args[1])})
	case syscall.SYS_FSYNC, syscall.SYS_FDATASYNC:
		p.recordFileEvent(c, event{sort: synced})
	case syscall.SYS_OPENAT, syscall.SYS_MKDIRAT, syscall.SYS_UNLINKAT, syscall.SYS_RENAMEAT, renameat2:
		p.recordNames()
	}
}

// recordFileEvent records what was done to the file of a descriptor, where that is one below root.
func (p *traced) recordFileEvent(c call, e event) {
	var stat syscall.Stat_t
	if syscall.Stat(fmt.Sprintf("/proc/%d/fd/%d", p.pid, c.args[0]), &stat) != nil {
		return
	}
	file, is := p.inodes[stat.Ino]
	if e.file = file; is {
		p.events = append(p.events, e)
	}
}

// recordNames records the names of the files where they are others than before.
func (p *traced) recordNames() {
	tree, inodes := map[string]node{}, map[uint64]int{}
	_ = filepath.WalkDir(p.root, func(path string, d fs.DirEntry, err error) error {
		var stat syscall.Stat_t
		if err != nil || syscall.Lstat(path, &stat) != nil {
			return nil //nolint:nilerror // another thread removed or renamed it: that comes as an event of its own
		}
		file, is := p.inodes[stat.Ino]
		if !is {
			file = p.next
			p.next++
		}
		below, _ := filepath.Rel(p.root, path)
		tree[below], inodes[stat.Ino] = node{file, d.IsDir()}, file
		return nil
	})
	if !maps.Equal(tree, p.tree) {
		p.events = append(p.events, event{sort: named, tree: tree})
	}
	p.tree, p.inodes = tree, inodes
}
