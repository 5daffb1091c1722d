package promql
import (
 _ "github.com/prometheus/prometheus/promql"
 _ "github.com/prometheus/prometheus/model/rulefmt"
 _ "github.com/prometheus/prometheus/model/textparse"
 _ "go.opentelemetry.io/otel/exporters/prometheus"
)
