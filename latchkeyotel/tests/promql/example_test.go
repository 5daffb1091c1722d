package promql

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// example is the folder of the example.
const example = "../../example"

// read reads a file of the example, and fails if the file has anything that to does not have.
func read(t *testing.T, name string, to any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(example, name))
	require.NoError(t, err)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	require.NoError(t, decoder.Decode(to), name)
}

// service is a service of the compose file.
type service struct {
	Image       string
	WorkingDir  string `yaml:"working_dir"`
	NetworkMode string `yaml:"network_mode"`
	Command     string
	Environment map[string]string
	Ports       []string
	Volumes     []string
}

// onHost returns which file or folder of the clone a container sees under a path.
func (s service) onHost(t *testing.T, path string) string {
	t.Helper()
	for _, volume := range s.Volumes {
		parts := strings.Split(volume, ":")
		require.Equal(t, []string{"ro"}, parts[2:], volume)
		if rest, within := strings.CutPrefix(path+"/", parts[1]+"/"); within {
			host := filepath.Join(example, parts[0], rest)
			require.True(t, exists(host), host)
			return host
		}
	}
	require.Fail(t, "no volume has it", "%s in %v", path, s.Volumes)
	return ""
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func compose(t *testing.T) map[string]service {
	t.Helper()
	var file struct{ Services map[string]service }
	read(t, "compose.yaml", &file)
	return file.Services
}

// Prometheus scrapes the address at which the example serves its metrics, and loads the alert
// rules.
func TestExample_prometheus(t *testing.T) {
	var config struct {
		Global        map[string]model.Duration
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			JobName       string                       `yaml:"job_name"`
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	read(t, "prometheus.yml", &config)
	require.Len(t, config.RuleFiles, 1)
	_, errs := rulefmt.ParseFile(filepath.Join(example, config.RuleFiles[0]), false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.Default())
	require.Empty(t, errs)
	require.Len(t, config.ScrapeConfigs, 1)
	require.Len(t, config.ScrapeConfigs[0].StaticConfigs, 1)
	program, err := os.ReadFile(filepath.Join(example, "main.go"))
	require.NoError(t, err)
	for _, target := range config.ScrapeConfigs[0].StaticConfigs[0].Targets {
		assert.Contains(t, string(program), `"`+target+`"`)
	}

	prometheus := compose(t)["prometheus"]
	path, is := strings.CutPrefix(prometheus.Command, "--config.file=")
	require.True(t, is, prometheus.Command)
	prometheus.onHost(t, path)
	prometheus.onHost(t, filepath.Join(filepath.Dir(path), config.RuleFiles[0]))
}

// Grafana finds Prometheus and the dashboard.
func TestExample_grafana(t *testing.T) {
	var sources struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			Name, Type, URL string
			IsDefault       bool `yaml:"isDefault"`
		}
	}
	read(t, "grafana/datasource.yaml", &sources)
	require.Len(t, sources.Datasources, 1)
	assert.Equal(t, "prometheus", sources.Datasources[0].Type, "the dashboard asks for this type")
	assert.Equal(t, "http://localhost:9090", sources.Datasources[0].URL)
	var dashboards struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name, Type string
			Options    struct{ Path string }
		}
	}
	read(t, "grafana/dashboards.yaml", &dashboards)
	require.Len(t, dashboards.Providers, 1)

	grafana := compose(t)["grafana"]
	grafana.onHost(t, filepath.Join(dashboards.Providers[0].Options.Path, "latchkey.json"))
	grafana.onHost(t, grafana.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
	for _, folder := range []string{"datasources", "dashboards"} {
		grafana.onHost(t, "/etc/grafana/provisioning/"+folder+"/latchkey.yaml")
	}
}

// All services share one network, which has the ports, and the example starts in the clone.
func TestExample_network(t *testing.T) {
	services := compose(t)
	for name, each := range services {
		assert.NotEmpty(t, each.Image, name)
		if name != "example" {
			assert.Equal(t, "service:example", each.NetworkMode, name)
		}
	}
	program := services["example"]
	assert.Equal(t, []string{"127.0.0.1:3000:3000", "127.0.0.1:9090:9090"}, program.Ports)
	folder := program.Command[strings.LastIndex(program.Command, " ")+1:]
	assert.FileExists(t, filepath.Join(program.onHost(t, filepath.Join(program.WorkingDir, folder)), "main.go"))
}
