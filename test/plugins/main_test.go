package plugins_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/evictrail/evictrail/store/storetest"
	"github.com/evictrail/evictrail/test/build"
)

const root = "../.."

// version is what the plugins are built as.
const version = "1.2.3"

// built is where the plugins are; hosts, the scripts of what stands in for the consoles.
var (
	built = filepath.Join(root, "bin/test/plugins")
	hosts = filepath.Join(built, "hosts")
)

// What the tests of the package share.
var (
	program  string          // evictrail, built from source
	incident demo            // a running evictrail with all recorded incidents
	window   context.Context // of the browser
)

func TestMain(m *testing.M) {
	var stops []func()
	stop := func() {
		for i := range stops {
			stops[len(stops)-1-i]()
		}
	}
	if err := startAll(func(f func()) { stops = append(stops, f) }); err != nil {
		stop()
		panic(err)
	}
	storetest.MainWith(m, stop)
}

// startAll builds everything, and starts the browser and evictrail. Each is stopped by a function that it hands to later.
func startAll(later func(func())) error {
	var err error
	if program, err = build.Evictrail(); err != nil {
		return fmt.Errorf("build evictrail: %w", err)
	}
	if err := buildPlugins(); err != nil {
		return err
	}
	if err := startBrowser(later); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "evictrail-plugins-")
	if err != nil {
		return err
	}
	later(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // as root the database runs as another user
		return err
	}
	if incident, err = startDemo(filepath.Join(dir, "data")); err != nil {
		return err
	}
	later(incident.stop)
	return nil
}

// buildPlugins builds the plugins as make does, and the hosts.
func buildPlugins() error {
	for _, args := range [][]string{
		{root + "/hack/build-plugins.sh", built, version},
		{"node", "hosts/build.js", hosts},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
		}
	}
	return nil
}

func startBrowser(later func(func())) error {
	chromium, err := findChromium()
	if err != nil {
		return err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.Flag("disable-dev-shm-usage", true))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	browsers, end := chromedp.NewExecAllocator(context.Background(), options...)
	later(end)
	window, end = chromedp.NewContext(browsers)
	later(end)
	if err := chromedp.Do(window); err != nil {
		return fmt.Errorf("start %s: %w", chromium, err)
	}
	return nil
}

// findChromium looks where hack/ensure-chromium.sh does.
func findChromium() (string, error) {
	if path := os.Getenv("EVICTRAIL_CHROMIUM"); path != "" {
		return path, nil
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("there is no Chromium: run hack/ensure-chromium.sh")
}

// demo is a running "evictrail demo": where it serves, and its database.
type demo struct {
	url, database string
	cmd           *exec.Cmd
}

var (
	printedAddress  = regexp.MustCompile(`--server (http://\S+)`)
	printedDatabase = regexp.MustCompile(`EVICTRAIL_DATABASE_URL='([^']+)'`)
)

// startDemo starts a demo and waits until it has played all incidents.
func startDemo(data string) (demo, error) {
	d := demo{cmd: exec.Command(program, "demo", "--listen", "127.0.0.1:0", "--data-dir", data)}
	d.cmd.Stderr = os.Stderr
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return d, err
	}
	if err := d.cmd.Start(); err != nil {
		return d, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := printedAddress.FindStringSubmatch(lines.Text()); m != nil {
			d.url = m[1]
		}
		if m := printedDatabase.FindStringSubmatch(lines.Text()); m != nil {
			d.database = m[1]
		}
		if strings.HasPrefix(lines.Text(), "All ") {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return d, nil
		}
	}
	return d, errors.Join(errors.New("the demo ended"), lines.Err(), d.cmd.Wait())
}

// stop ends it as Ctrl-C does.
func (d demo) stop() {
	_ = d.cmd.Process.Signal(os.Interrupt)
	late := time.AfterFunc(20*time.Second, func() { _ = d.cmd.Process.Kill() })
	defer late.Stop()
	_ = d.cmd.Wait()
}
