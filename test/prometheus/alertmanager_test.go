package prometheus_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/evictrail/evictrail/alerts"
	"github.com/evictrail/evictrail/test/ports"
)

const (
	routing          = root + "/deploy/alertmanager/alertmanager.yaml"
	messageTemplates = root + "/deploy/alertmanager/evictrail.tmpl"
)

// findAlertmanager finds the program that distributions ship, and its amtool.
func findAlertmanager(t *testing.T) (program, amtool string) {
	t.Helper()
	program = os.Getenv("EVICTRAIL_ALERTMANAGER")
	if program == "" {
		var err error
		program, err = filepath.Abs(root + "/bin/debian/alertmanager")
		require.NoError(t, err)
	}
	require.FileExists(t, program, "run hack/ensure-alertmanager.sh, or set EVICTRAIL_ALERTMANAGER to an Alertmanager, 0.25 or newer")
	return program, filepath.Join(filepath.Dir(program), "amtool")
}

// TestRoutingExampleIsTaken checks the example with amtool, and asks it where alerts go.
func TestRoutingExampleIsTaken(t *testing.T) {
	t.Parallel()
	_, amtool := findAlertmanager(t)
	out, err := exec.CommandContext(t.Context(), amtool, "check-config", routing).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "1 templates")
	for labels, receiver := range map[string]string{
		"alertname=EvictrailDualRetryLoop severity=critical cluster=prod":          "evictrail-page",
		"alertname=EvictrailDualRetryLoop severity=critical":                       "evictrail-page",
		"alertname=EvictrailDualRetryLoop severity=warning cluster=prod node=n1":   "evictrail-chat",
		"alertname=EvictrailVMChurnHigh severity=info cluster=prod":                "evictrail-mail",
		"alertname=EvictrailDualRetryLoop severity=critical cluster=lab-frankfurt": "evictrail-mail",
		"alertname=KubeVirtDown severity=critical cluster=prod":                    "default",
	} {
		args := append([]string{"config", "routes", "test", "--config.file=" + routing, "--verify.receivers=" + receiver}, strings.Fields(labels)...)
		out, err := exec.CommandContext(t.Context(), amtool, args...).CombinedOutput()
		require.NoError(t, err, "%s: %s", labels, out)
	}
}

// TestRoutingPageShowsTheExample: what docs/routing.md shows is a part of the example, and the example has the inhibition rules that are generated.
func TestRoutingPageShowsTheExample(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile(routing)
	require.NoError(t, err)
	page, err := os.ReadFile(root + "/docs/routing.md")
	require.NoError(t, err)
	shown := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	require.NotEmpty(t, shown)
	for _, block := range shown {
		if !strings.HasPrefix(string(block[1]), "# ") { // else it says of which other file it is
			require.Contains(t, string(example), string(block[1]))
		}
	}
	var config struct {
		InhibitRules []alerts.InhibitRule `json:"inhibit_rules"`
	}
	require.NoError(t, yaml.Unmarshal(example, &config))
	require.Equal(t, alerts.Inhibitions(), config.InhibitRules)
}

// inboxes hold what each receiver was sent: slack, teams, hook and mail.
type inboxes map[string]chan []byte

// TestMessagesArrive has a real Alertmanager send alerts to receivers of this test: with titles, texts, and links about the time of the alert.
func TestMessagesArrive(t *testing.T) { //nolint:tparallel // its parts read one inbox after the other
	t.Parallel()
	inbox := inboxes{}
	for _, receiver := range []string{"slack", "teams", "hook", "mail"} {
		inbox[receiver] = make(chan []byte, 100)
	}
	url := startAlertmanager(t, inbox)
	start := time.Now().UTC().Add(-30 * time.Minute).Truncate(time.Second)
	from, millis := start.Add(-time.Hour).Format(time.RFC3339), start.Add(-time.Hour).UnixMilli()

	t.Run("a critical alert", func(t *testing.T) {
		postAlerts(t, url, start, time.Time{}, exampleAlert(t, "EvictrailGuestsLostWidespread", "critical", nil))
		slack := readSlack(t, receiveMessage(t, inbox, "slack"))
		require.Equal(t, "CRITICAL prod: The platform shut down or lost 3 VMs within 15 minutes", slack.Title)
		require.Equal(t, "danger", slack.Color)
		require.Contains(t, slack.Text, "In the last 15 minutes 3 VMs ended without their owners' will")
		page := "https://evictrail.example/?cluster=prod&from=" + from
		require.Equal(t, page, slack.TitleLink)
		require.Equal(t, map[string]string{
			"Page":      page,
			"Dashboard": fmt.Sprintf("https://grafana.example/d/evictrail-overview?var-cluster=prod&from=%d&to=now", millis),
			"Runbook":   "https://github.com/evictrail/evictrail/blob/main/docs/runbooks/EvictrailGuestsLostWidespread.md",
		}, slack.buttons())

		var hook struct {
			Alerts []struct{ Annotations map[string]string }
		}
		require.NoError(t, json.Unmarshal(receiveMessage(t, inbox, "hook"), &hook))
		require.Equal(t, "https://evictrail.example/?cluster=prod", hook.Alerts[0].Annotations["page_url"], "a webhook is sent annotations as they are")
	})

	t.Run("two warnings, one of which ends", func(t *testing.T) {
		one := exampleAlert(t, "EvictrailEvacuationStuck", "warning", map[string]string{"vmi": "db-1"})
		two := exampleAlert(t, "EvictrailEvacuationStuck", "warning", map[string]string{"vmi": "db-2"})
		two.Annotations["summary"] += " & <!channel>"
		postAlerts(t, url, start, time.Time{}, one, two)
		slack := readSlack(t, receiveMessage(t, inbox, "slack"))
		require.Equal(t, "WARNING prod: 2 alerts EvictrailEvacuationStuck", slack.Title)
		require.Equal(t, "warning", slack.Color)
		require.Contains(t, slack.Text, "*Evacuation of shop/db-1 has failed 3 times* <https://evictrail.example/vms/shop/db-1?cluster=prod&from="+from+"|Page>\nKubeVirt has tried")
		require.Contains(t, slack.Text, "*Evacuation of shop/db-2 has failed 3 times &amp; &lt;!channel&gt;* <https://evictrail.example/vms/shop/db-2?")
		teams := readSlack(t, receiveMessage(t, inbox, "teams")).Text
		require.Contains(t, teams, "**Evacuation of shop/db-1 has failed 3 times**\n\nKubeVirt has tried 3 times")
		require.Contains(t, teams, "[Page](https://evictrail.example/vms/shop/db-1?cluster=prod&from="+from+") [Dashboard](https://grafana.example/d/evictrail-vm?var-cluster=prod&var-node=worker-12&")

		end := start.Add(20 * time.Minute)
		postAlerts(t, url, start, end, one, two)
		slack = readSlack(t, receiveMessage(t, inbox, "slack"))
		require.Equal(t, "RESOLVED prod: 2 alerts EvictrailEvacuationStuck", slack.Title)
		require.Equal(t, "good", slack.Color)
		require.Equal(t, "https://evictrail.example/vms/shop/db-1?cluster=prod&from="+from+"&to="+end.Add(10*time.Minute).Format(time.RFC3339), slack.buttons()["Page"])
		require.True(t, strings.HasSuffix(slack.buttons()["Dashboard"], fmt.Sprintf("&from=%d&to=%d", millis, end.Add(10*time.Minute).UnixMilli())), slack.buttons())
	})

	t.Run("an alert without links", func(t *testing.T) {
		bare := exampleAlert(t, "EvictrailNoLeader", "warning", nil)
		delete(bare.Annotations, "page_url")
		delete(bare.Annotations, "dashboard_url")
		postAlerts(t, url, start, time.Time{}, bare)
		buttons := readSlack(t, receiveMessage(t, inbox, "slack")).buttons()
		require.Equal(t, "https://alertmanager.example/#/alerts?receiver=evictrail-chat", buttons["Page"], "a button leads somewhere")
		require.Equal(t, buttons["Page"], buttons["Dashboard"])
		require.NotContains(t, readSlack(t, receiveMessage(t, inbox, "teams")).Text, "[Page]")
	})

	t.Run("a mail", func(t *testing.T) {
		postAlerts(t, url, start, time.Time{}, exampleAlert(t, "EvictrailVMChurnHigh", "info", nil))
		subject, html := readMail(t, receiveMessage(t, inbox, "mail"))
		require.Equal(t, "INFO prod: VM shop/db-1 was rebalanced 3 times in 24h", subject)
		require.Contains(t, html, `<a href="https://evictrail.example/vms/shop/db-1?cluster=prod&amp;from=`+from+`">Page</a>`)
		require.Contains(t, html, `/docs/runbooks/EvictrailVMChurnHigh.md">Runbook</a>`)
		require.Contains(t, html, "since "+start.Format(time.DateTime)+" UTC")
	})
}

// sentAlert is an alert as Alertmanager takes it.
type sentAlert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt,omitzero"`
}

// exampleAlert is an alert of ours as Prometheus sends it: with the texts of its rule, of series with the labels of the examples, some of which are others.
func exampleAlert(t *testing.T, name, severity string, others map[string]string) sentAlert {
	t.Helper()
	o := alerts.DefaultOptions()
	o.DashboardURL, o.PublicURL = "https://grafana.example", "https://evictrail.example"
	for _, group := range alerts.Groups(o) {
		for _, rule := range group.Rules {
			if rule.Alert != name || rule.Labels["severity"] != severity {
				continue
			}
			expr, err := parser.NewParser(parser.Options{}).ParseExpr(rule.Expr)
			require.NoError(t, err)
			left, err := knownShapes().exprLabels(expr)
			require.NoError(t, err)
			series := map[string]string{}
			for _, label := range left {
				series[label] = exampleLabels[label]
			}
			for label, value := range others {
				series[label] = value
			}
			a := sentAlert{Labels: map[string]string{"alertname": name}, Annotations: expandAnnotations(t, rule, series)}
			for _, of := range []map[string]string{series, rule.Labels} {
				for label, value := range of {
					a.Labels[label] = value
				}
			}
			return a
		}
	}
	require.Fail(t, "no rule", "%s %s", name, severity)
	return sentAlert{}
}

// postAlerts sends alerts as Prometheus does; a zero end is none.
func postAlerts(t *testing.T, url string, start, end time.Time, all ...sentAlert) {
	t.Helper()
	for i := range all {
		all[i].StartsAt, all[i].EndsAt = start, end
	}
	body, err := json.Marshal(all)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/api/v2/alerts", bytes.NewReader(body))
	require.NoError(t, err)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s", text)
}

// receiveMessage waits for the next message to a receiver.
func receiveMessage(t *testing.T, inbox inboxes, to string) []byte {
	t.Helper()
	select {
	case text := <-inbox[to]:
		return text
	case <-time.After(time.Minute):
		require.Fail(t, "nothing arrives", to)
		return nil
	}
}

// startAlertmanager starts an Alertmanager with the example, whose receivers are in this process and that waits for nothing. It ends with t.
func startAlertmanager(t *testing.T, inbox inboxes) (url string) {
	t.Helper()
	program, _ := findAlertmanager(t)
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		inbox[strings.Trim(r.URL.Path, "/")] <- text
	}))
	t.Cleanup(web.Close)
	dir, address := t.TempDir(), ports.Free(t)
	config := filepath.Join(dir, "alertmanager.yaml")
	require.NoError(t, os.WriteFile(config, localRouting(t, web.URL, listenMail(t, inbox)), 0o600))
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program, "--config.file="+config, "--storage.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+address, "--web.external-url=https://alertmanager.example", "--web.route-prefix=/", "--cluster.listen-address=")
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Wait() // killed by the end of the test's context
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s", text)
		}
		_ = log.Close()
	})
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	}, time.Minute, 50*time.Millisecond)
	return "http://" + address
}

// localRouting is the example with the receivers of this process, and without waits. Chat has a second receiver, with the text for Teams: an Alertmanager
// of distributions cannot send to Teams.
func localRouting(t *testing.T, web, smarthost string) []byte {
	t.Helper()
	text, err := os.ReadFile(routing)
	require.NoError(t, err)
	out := string(text)
	absolute, err := filepath.Abs(messageTemplates)
	require.NoError(t, err)
	for old, replacement := range map[string]string{
		"- evictrail.tmpl\n":                        "- " + absolute + "\n",
		"api_url_file: /etc/alertmanager/slack-url": "api_url: " + web + "/slack",
		"https://pager.example/hook":                web + "/hook",
		"smtp_smarthost: mail.example:25":           "smtp_smarthost: " + smarthost + "\n  smtp_require_tls: false",
		"- name: evictrail-page\n":                  "  - {api_url: '" + web + "/teams', channel: c, text: '{{ template \"evictrail.teams.text\" . }}'}\n- name: evictrail-page\n",
	} {
		require.Contains(t, out, old)
		out = strings.Replace(out, old, replacement, 1)
	}
	out = regexp.MustCompile(`(group_wait|group_interval): \w+`).ReplaceAllString(out, "$1: 1s")
	return []byte(out)
}

// slackAttachment is as much of a message to Slack as is looked at.
type slackAttachment struct {
	Title     string
	TitleLink string `json:"title_link"`
	Text      string
	Color     string
	Actions   []struct{ Text, URL string }
}

func (a slackAttachment) buttons() map[string]string {
	out := map[string]string{}
	for _, action := range a.Actions {
		out[action.Text] = action.URL
	}
	return out
}

func readSlack(t *testing.T, text []byte) slackAttachment {
	t.Helper()
	var m struct{ Attachments []slackAttachment }
	require.NoError(t, json.Unmarshal(text, &m))
	require.Len(t, m.Attachments, 1)
	return m.Attachments[0]
}

// readMail returns the subject and the HTML of a mail.
func readMail(t *testing.T, text []byte) (subject, html string) {
	t.Helper()
	m, err := mail.ReadMessage(bytes.NewReader(text))
	require.NoError(t, err)
	subject, err = new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	require.NoError(t, err)
	_, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	require.NoError(t, err)
	for parts := multipart.NewReader(m.Body, params["boundary"]); ; {
		part, err := parts.NextRawPart()
		require.NoError(t, err, "no part is HTML")
		if strings.HasPrefix(part.Header.Get("Content-Type"), "text/html") {
			body, err := io.ReadAll(quotedprintable.NewReader(part))
			require.NoError(t, err)
			return subject, string(body)
		}
	}
}

// listenMail takes mails until the test ends, and returns its address.
func listenMail(t *testing.T, inbox inboxes) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go serveMail(conn, inbox)
		}
	}()
	return listener.Addr().String()
}

// serveMail speaks as much of SMTP as one mail takes.
//
// Source: RFC 5321.
func serveMail(conn net.Conn, inbox inboxes) {
	defer func() { _ = conn.Close() }()
	lines := bufio.NewReader(conn)
	reply := func(text string) { _, _ = io.WriteString(conn, text+"\r\n") }
	reply("220 test")
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		switch command := strings.ToUpper(line[:min(4, len(line))]); {
		case command == "QUIT":
			reply("221 bye")
			return
		case command == "DATA":
			reply("354 go on")
			var text []string
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					return
				}
				if line == ".\r\n" {
					break
				}
				text = append(text, strings.TrimPrefix(line, "."))
			}
			inbox["mail"] <- []byte(strings.Join(text, ""))
			reply("250 taken")
		case slices.Contains([]string{"EHLO", "HELO"}, command):
			reply("250 test")
		default:
			reply("250 ok")
		}
	}
}
