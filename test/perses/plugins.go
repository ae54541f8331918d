package main

import ( // the modules with the schemas of the plugins that our dashboards use, in the versions that Perses v0.52 has
	_ "github.com/perses/plugins/markdown/sdk/go"
	_ "github.com/perses/plugins/prometheus/sdk/go/query"
	_ "github.com/perses/plugins/statchart/sdk/go"
	_ "github.com/perses/plugins/table/sdk/go"
	_ "github.com/perses/plugins/timeserieschart/sdk/go"
)
