// Package promql runs the queries of the dashboard and of the alert rules in the engine of
// Prometheus, on metrics that clients export.
package promql

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"
)

const interval = 15 * time.Second

// server scrapes a registry as a Prometheus server does, at times that the test sets, and answers
// queries.
type server struct {
	engine *promql.Engine
	page   http.Handler
	now    time.Time
	series map[string]*samples // by their labels
	names  map[string]bool     // of metrics, without the suffixes of histograms
}

type samples struct {
	labels labels.Labels
	list   []chunks.Sample
}

func newServer(registry *prometheus.Registry) *server {
	return &server{
		engine: promql.NewEngine(promql.EngineOpts{
			MaxSamples: 1_000_000, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{}),
		}),
		page: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}),
		now:  time.Unix(1_700_000_000, 0), series: map[string]*samples{}, names: map[string]bool{},
	}
}

// scrape reads the page, one interval after the previous scrape.
func (s *server) scrape(t *testing.T) {
	t.Helper()
	s.now = s.now.Add(interval)
	answer := httptest.NewRecorder()
	s.page.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	require.Equal(t, http.StatusOK, answer.Code)
	page := textparse.NewPromParser(answer.Body.Bytes(), labels.NewSymbolTable(), false)
	for {
		entry, err := page.Next()
		if err == io.EOF { //nolint:errorlint // as Next documents
			return
		}
		require.NoError(t, err)
		switch entry {
		case textparse.EntryType:
			name, _ := page.Type()
			s.names[string(name)] = true
		case textparse.EntrySeries:
			s.add(page)
		}
	}
}

// add adds the current sample of the parser.
func (s *server) add(page textparse.Parser) {
	var found labels.Labels
	page.Labels(&found)
	_, _, value := page.Series()
	all := labels.NewBuilder(found).Set("job", "program").Set("instance", "here").Labels()
	known := s.series[all.String()]
	if known == nil {
		known = &samples{labels: all}
		s.series[all.String()] = known
	}
	known.list = append(known.list, sample{s.now.UnixMilli(), value})
}

// query returns the current result of a query.
func (s *server) query(t *testing.T, text string) promql.Vector {
	t.Helper()
	q, err := s.engine.NewInstantQuery(t.Context(), s, promql.NewPrometheusQueryOpts(false, 0), text, s.now)
	require.NoError(t, err, text)
	defer q.Close()
	result := q.Exec(t.Context())
	require.NoError(t, result.Err, text)
	require.Empty(t, result.Warnings, text)
	vector, err := result.Vector()
	require.NoError(t, err, text)
	var copied promql.Vector // the engine reuses its result
	return append(copied, vector...)
}

// Querier is part of [storage.Queryable].
func (s *server) Querier(_, _ int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: s.find}, nil
}

func (s *server) find(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := &seriesSet{}
	for _, each := range s.series {
		if matches(each.labels, matchers) {
			found.series = append(found.series, storage.NewListSeries(each.labels, each.list))
		}
	}
	return found
}

func matches(of labels.Labels, matchers []*labels.Matcher) bool {
	for _, m := range matchers {
		if !m.Matches(of.Get(m.Name)) {
			return false
		}
	}
	return true
}

// seriesSet has the series that were found: a [storage.SeriesSet].
type seriesSet struct {
	series []storage.Series
	next   int
}

func (s *seriesSet) Next() bool {
	s.next++
	return s.next <= len(s.series)
}

func (s *seriesSet) At() storage.Series                { return s.series[s.next-1] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

// sample is a [chunks.Sample].
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }
