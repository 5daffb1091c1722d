package latchkeyotel

import (
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/latchkey-go/latchkey"
)

// The keys of attributes.
const (
	KindKey    = attribute.Key("latchkey.kind")
	OutcomeKey = attribute.Key("latchkey.outcome")
	NameKey    = attribute.Key("latchkey.name") // only with [WithNames], and for watched objects
)

// labels makes the attributes of events.
type labels struct {
	names bool
	sets  sync.Map // metric.MeasurementOption by labelKey; few, because a labelKey has no name
}

type labelKey struct {
	kind    latchkey.Kind
	outcome string
}

// of returns the attributes of a measurement. The outcome may be empty.
func (l *labels) of(e latchkey.Event, outcome string) metric.MeasurementOption {
	if l.names {
		return metric.WithAttributeSet(attribute.NewSet(l.list(e, outcome)...))
	}
	key := labelKey{e.Kind, outcome}
	if set, found := l.sets.Load(key); found {
		return set.(metric.MeasurementOption)
	}
	set, _ := l.sets.LoadOrStore(key, metric.WithAttributeSet(attribute.NewSet(l.list(e, outcome)...)))
	return set.(metric.MeasurementOption)
}

// list returns the same attributes, for spans.
func (l *labels) list(e latchkey.Event, outcome string) []attribute.KeyValue {
	list := make([]attribute.KeyValue, 0, 4)
	list = append(list, KindKey.String(string(e.Kind)))
	if outcome != "" {
		list = append(list, OutcomeKey.String(outcome))
	}
	if l.names {
		list = append(list, NameKey.String(e.Name))
	}
	return list
}
