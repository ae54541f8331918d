package browser_test

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

// What the tests of the package share.
var (
	program string          // evictrail, built from source
	site    string          // where a demo serves all incidents
	window  context.Context // of the browser
)

func TestMain(m *testing.M) {
	stop, err := startBrowserAndDemo()
	if err != nil {
		stop()
		panic(err)
	}
	storetest.MainWith(m, stop)
}

// startBrowserAndDemo builds the program, starts the browser and a demo, and waits until all incidents are in.
func startBrowserAndDemo() (stop func(), err error) {
	var stops []func()
	stop = func() {
		for i := range stops {
			stops[len(stops)-1-i]()
		}
	}
	dir, err := os.MkdirTemp("", "evictrail-browser-")
	if err != nil {
		return stop, err
	}
	stops = append(stops, func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil { // as root the database runs as another user
		return stop, err
	}
	if program, err = build.Evictrail(); err != nil {
		return stop, fmt.Errorf("build evictrail: %w", err)
	}
	chromium, err := findChromium()
	if err != nil {
		return stop, err
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.Flag("disable-dev-shm-usage", true))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	browsers, end := chromedp.NewExecAllocator(context.Background(), options...)
	stops = append(stops, end)
	window, end = chromedp.NewContext(browsers)
	stops = append(stops, end)
	if err := chromedp.Do(window); err != nil {
		return stop, fmt.Errorf("start %s: %w", chromium, err)
	}
	d, err := startDemo("--listen", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data"))
	if err != nil {
		return stop, err
	}
	stops = append(stops, d.stop)
	site = d.url
	return stop, nil
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

// demo is a running "evictrail demo".
type demo struct {
	url string
	cmd *exec.Cmd
}

var printedAddress = regexp.MustCompile(`--server (http://\S+)`)

// startDemo starts a demo and waits until it has played what it plays.
func startDemo(args ...string) (*demo, error) {
	d := &demo{cmd: exec.Command(program, append([]string{"demo"}, args...)...)}
	d.cmd.Stderr = os.Stderr
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := printedAddress.FindStringSubmatch(lines.Text()); m != nil {
			d.url = m[1]
		}
		if strings.HasPrefix(lines.Text(), "All ") {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return d, nil
		}
	}
	return nil, errors.Join(errors.New("the demo ended"), lines.Err(), d.cmd.Wait())
}

// stop ends it as Ctrl-C does.
func (d *demo) stop() {
	_ = d.cmd.Process.Signal(os.Interrupt)
	late := time.AfterFunc(20*time.Second, func() { _ = d.cmd.Process.Kill() })
	defer late.Stop()
	_ = d.cmd.Wait()
}
