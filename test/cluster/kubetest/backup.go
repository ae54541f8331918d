package kubetest

import (
	"errors"
	"os"
	"path/filepath"
)

func (c *Cluster) dataDir() string { return filepath.Join(c.dir, "etcd") }

// Backup stops etcd for a moment, and returns the path of a copy of its data.
func (c *Cluster) Backup() string {
	c.t.Helper()
	c.stopEtcd()
	backup, err := os.MkdirTemp(c.dir, "backup-")
	if err == nil {
		err = os.CopyFS(backup, os.DirFS(c.dataDir()))
	}
	if err != nil {
		c.t.Fatalf("copy the data of etcd: %v", err)
	}
	c.startEtcd()
	return backup
}

// Restore puts etcd back to a backup. The API server is stopped during that time, as the documentation of etcd wants: what it has in memory would be newer than etcd.
func (c *Cluster) Restore(backup string) {
	c.t.Helper()
	c.KillServer()
	c.swapEtcd(backup)
	c.StartServer()
}

// Rebuild makes it another cluster at the same address, with the same authority: nothing but KubeVirt's kinds is in it.
func (c *Cluster) Rebuild() {
	c.t.Helper()
	c.KillServer()
	c.swapEtcd("")
	c.StartServer()
	c.Apply(c.kinds)
	c.awaitKinds()
}

// swapEtcd has etcd go on with other data; with none where the path is empty.
func (c *Cluster) swapEtcd(data string) {
	c.t.Helper()
	c.stopEtcd()
	err := errors.Join(os.RemoveAll(c.dataDir()), os.Mkdir(c.dataDir(), 0o700))
	if err == nil && data != "" {
		err = os.CopyFS(c.dataDir(), os.DirFS(data))
	}
	if err != nil {
		c.t.Fatalf("swap the data of etcd: %v", err)
	}
	c.startEtcd()
}

// stopEtcd ends etcd in order: what it has acknowledged is in its data.
func (c *Cluster) stopEtcd() { _ = c.store.Stop() }
