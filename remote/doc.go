// Package remote reaches HTTP servers that evictrail calls: a Prometheus, a descheduler, a receiver of events.
//
//	c, err := remote.NewClient(remote.Server{URL: "https://prometheus.example", TokenFile: "token"}, 10*time.Second)
//	client, _, err := c.Current()
//	answer, err := client.Get("https://prometheus.example/api/v1/query?query=up")
package remote
