package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the user that initdb and the server run as.
type account struct {
	name     string
	uid, gid uint32
	switched bool // we are root, and this is somebody else
}

// serverAccount is ourselves, or for root the first of postgres and nobody that the machine knows.
func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{name: "uid " + strconv.Itoa(os.Geteuid()), uid: uint32(os.Geteuid()), gid: uint32(os.Getegid())}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return account{}, fmt.Errorf("look up user %s: %w", name, err)
		}
		return account{name: name, uid: uint32(uid), gid: uint32(gid), switched: true}, nil
	}
	return account{}, errors.New("choose user of server: PostgreSQL refuses to run as root, and there is no user postgres or nobody: " +
		"make one or start evictrail as another user")
}

// applyToCommand makes the command run as the account, in a directory that it can enter, and in a process group of its own: an
// interrupt from the terminal is for us, and we stop the server in order. Of our environment it gets what finds
// programs and libraries, neither secrets nor the PG variables of the user's own clients.
func (a account) applyToCommand(cmd *exec.Cmd, dir string) {
	cmd.Dir = dir
	cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH"), "LD_LIBRARY_PATH=" + os.Getenv("LD_LIBRARY_PATH")}
	cmd.SysProcAttr = processAttributes()
	cmd.SysProcAttr.Setpgid = true
	if a.switched {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid} // and no other groups
	}
}

// makeParent makes the directory and those above it where they are missing, and returns its absolute path without
// symbolic links. The account can enter it.
func (a account) makeParent(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("make directory: %w", err)
	}
	if err := a.makeAll(path); err != nil {
		return "", fmt.Errorf("make directory: %w", err)
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", fmt.Errorf("make directory: %w", err)
	}
	return path, a.checkPath(path)
}

// makeAll is os.MkdirAll, but makes nothing in a directory that is closed to the account, and what root makes is open to
// it whatever the umask is.
func (a account) makeAll(path string) error {
	if !a.switched {
		return os.MkdirAll(path, 0o755)
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return a.checkPath(path)
	}
	if err := a.makeAll(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	return os.Chmod(path, 0o755)
}

// checkPath refuses a path that the account cannot enter. It looks at the modes alone, for root: others get the
// kernel's own answer soon enough.
func (a account) checkPath(path string) error {
	if !a.switched {
		return nil
	}
	if path != filepath.Dir(path) {
		if err := a.checkPath(filepath.Dir(path)); err != nil {
			return err
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("look at directory: %w", err)
	}
	if !a.canEnter(info) {
		return fmt.Errorf("enter directory %s: closed to user %s, whom the server runs as for root (mode %s): choose another directory, "+
			"start evictrail as another user, or allow it with chmod o+x", path, a.name, info.Mode())
	}
	return nil
}

func (a account) canEnter(info fs.FileInfo) bool {
	stat := info.Sys().(*syscall.Stat_t)
	mode := info.Mode().Perm()
	switch {
	case stat.Uid == a.uid:
		return mode&0o100 != 0
	case stat.Gid == a.gid:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}

// makeOwned makes a directory for the account alone. One that is there must be that already.
func (a account) makeOwned(path string) error {
	err := os.Mkdir(path, 0o700)
	if err == nil {
		return a.chownDir(path)
	}
	info, statErr := os.Lstat(path)
	if statErr != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	if !info.IsDir() || ownerOf(info) != a.uid || info.Mode().Perm() != 0o700 {
		return fmt.Errorf("use directory %s: mode %s, uid %d: must be a directory of %s with mode 0700: move it away",
			path, info.Mode(), ownerOf(info), a.name)
	}
	return nil
}

// chownDir makes the account the owner of a directory that we have just made.
func (a account) chownDir(path string) error {
	if !a.switched {
		return nil
	}
	if err := os.Lchown(path, int(a.uid), int(a.gid)); err != nil {
		return fmt.Errorf("give directory to %s: %w", a.name, err)
	}
	return nil
}

func ownerOf(info fs.FileInfo) uint32 { return info.Sys().(*syscall.Stat_t).Uid }
