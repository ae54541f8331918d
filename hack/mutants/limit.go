//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// prSetChildSubreaper makes processes whose parent ended children of ours. Source: linux/prctl.h.
const prSetChildSubreaper = 36

// adoptOrphans keeps what tests start below this process, also when a test is killed, so that it is found and killed.
func adoptOrphans() error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		return fmt.Errorf("adopt orphans: %w", errno)
	}
	return nil
}

// watchLimits kills a process and all below it when it takes too long, or when together they take too much memory of their own: some mutants never end, and
// some take all there is. Stop ends the watch and returns why the process was killed, if it was.
//
// A limit of the address space (ulimit -v) is no use for Go, and a memory cgroup needs rights that not everybody has.
func watchLimits(pid int, within time.Duration, memory int64) (stop func() string) {
	ended, said := make(chan struct{}), make(chan string, 1)
	go func() {
		tick := time.NewTicker(300 * time.Millisecond)
		defer tick.Stop()
		deadline := time.After(within)
		for {
			why := ""
			select {
			case <-ended:
				said <- ""
				return
			case <-deadline:
				why = "ran out of time"
			case <-tick.C:
				if taken := memoryOf(append(findDescendants(pid), pid)); taken > memory {
					why = fmt.Sprintf("took more than %d MiB", memory>>20)
				}
			}
			if why != "" {
				all := findDescendants(pid)
				_ = syscall.Kill(-pid, syscall.SIGKILL)
				for _, below := range all {
					_ = syscall.Kill(below, syscall.SIGKILL)
				}
				<-ended
				said <- why
				return
			}
		}
	}()
	return func() string { close(ended); return <-said }
}

// findDescendants returns the processes below one.
func findDescendants(pid int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state parent ...; the name may hold anything
		fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			children[parent] = append(children[parent], child)
		}
	}
	var all []int
	for next := children[pid]; len(next) > 0; next = next[1:] {
		all = append(all, next[0])
		next = append(next, children[next[0]]...)
	}
	return all
}

// memoryOf returns the bytes that processes take in memory and share with no file and with no other process.
func memoryOf(pids []int) (bytes int64) {
	for _, pid := range pids {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if err != nil {
			continue
		}
		var size, resident, shared int64
		if _, err := fmt.Sscan(string(raw), &size, &resident, &shared); err == nil {
			bytes += (resident - shared) * int64(os.Getpagesize())
		}
	}
	return bytes
}

// killDescendants kills all processes below one and waits for them.
func killDescendants(pid int) {
	for range 50 {
		left := findDescendants(pid)
		if len(left) == 0 {
			return
		}
		for _, below := range left {
			_ = syscall.Kill(below, syscall.SIGKILL)
			_, _ = syscall.Wait4(below, nil, syscall.WNOHANG, nil)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
