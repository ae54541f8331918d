// Package api serves evictrail over HTTP: for now what machines ask a service for, its health and its metrics. What it
// needs of the rest it takes as functions, so that it imports neither the store nor the collector.
package api
