package connect

import (
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/redis/rueidis"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

// urlParameters lists the parameters of a URL for [ParseURL], and whether each may be
// repeated.
var urlParameters = map[string]bool{
	"addr": true, "master_set": false, "db": false, "client_name": false, "dial_timeout": false,
	"write_timeout": false, "protocol": false, "skip_verify": false,
}

// urlForm is the form of a URL that errors suggest.
const urlForm = "want redis://host:port"

// ParseURL accepts what rueidis accepts, but refuses what rueidis would misread or
// ignore.
func ParseURL(rawURL string) (rueidis.ClientOption, error) {
	u, err := url.Parse(rawURL)
	switch {
	case secretCutOff(rawURL):
		return rueidis.ClientOption{}, fault.Invalid("the URL of the server " +
			"has a character in its password that ends the password; " +
			"percent-encode it: / is %%2F, # is %%23, ? is %%3F, %% is %%25")
	case !strings.Contains(rawURL, "://"):
		return rueidis.ClientOption{}, fault.Invalid("%q is not the URL of a server; %s", Redacted(rawURL), urlForm)
	case err != nil && strings.Contains(rawURL, "@"):
		return rueidis.ClientOption{}, fault.Invalid("the URL of the server cannot be parsed; "+
			"percent-encode what is special in its password (%% is %%25, / is %%2F, # is %%23); %s", urlForm)
	case err != nil:
		return rueidis.ClientOption{}, fault.Invalid("the URL of the server cannot be parsed; %s", urlForm)
	}
	if problem := urlFault(u); problem != "" {
		return rueidis.ClientOption{}, fault.Invalid("the URL %q %s", Redacted(rawURL), problem)
	}
	if u.Scheme != "unix" {
		u.Path = strings.TrimSuffix(u.Path, "/")
	}
	settings, err := rueidis.ParseURL(u.String())
	if err != nil {
		return settings, fault.Invalid("the URL %q: %s", Redacted(rawURL), strings.TrimPrefix(err.Error(), "redis: "))
	}

	return settings, nil
}

// secretCutOff reports whether a part of the user or the password seems to be in the path, in the
// name of a parameter or in the fragment, because it has a character that ends the password.
func secretCutOff(rawURL string) bool {
	scheme, rest, found := strings.Cut(rawURL, "://")
	if !found || scheme == "unix" {
		return false
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		return false
	}
	rest, fragment, _ := strings.Cut(rest[end:], "#")
	path, query, _ := strings.Cut(rest, "?")
	for _, parameter := range strings.Split(query, "&") {
		name, _, _ := strings.Cut(parameter, "=")
		if name != "client_name" && strings.Contains(parameter, "@") {
			return true
		}
	}
	return strings.Contains(path, "@") || strings.Contains(fragment, "@")
}

// urlFault says what is wrong with a URL, or returns "".
func urlFault(u *url.URL) string {
	switch u.Scheme {
	case "redis", "rediss", "valkey", "valkeys":
	case "unix":
		if u.Host != "" || u.Path == "" {
			return "names no socket; want unix:///path/of/socket"
		}
	default:
		return "has an unknown scheme; " + urlForm + ", rediss://host:port or unix:///path"
	}
	switch {
	case strings.Contains(u.Host, ","):
		return "names several hosts; give the others as ?addr=host:port"
	case u.Fragment != "":
		return "has a fragment (#…); write # in a password as %23"
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return "has parameters that cannot be parsed"
	}
	return parameterFault(u, query)
}

// parameterFault is urlFault for the part after the question mark.
func parameterFault(u *url.URL, query url.Values) string {
	for _, name := range slices.Sorted(maps.Keys(query)) {
		repeatable, known := urlParameters[name]
		switch {
		case !known:
			known := slices.Sorted(maps.Keys(urlParameters))
			return "has the unknown parameter " + name + "; known are " + strings.Join(known, ", ")
		case !repeatable && len(query[name]) > 1:
			return "has the parameter " + name + " more than once"
		case query[name][0] == "" && name != "skip_verify":
			return "has the parameter " + name + " without a value"
		}
	}
	switch secure := u.Scheme == "rediss" || u.Scheme == "valkeys"; {
	case query.Has("skip_verify") && !secure:
		return "has skip_verify, which is for rediss://"
	case query.Has("protocol") && query.Get("protocol") != "2" && query.Get("protocol") != "3":
		return "has a protocol that is not 2 or 3"
	case query.Has("addr") && u.Scheme == "unix":
		return "has addr, which is not for sockets"
	case query.Has("db") && u.Scheme != "unix" && strings.Trim(u.Path, "/") != "":
		return "has two databases, in the path and as db"
	}
	for _, addr := range query["addr"] { // without a port, rueidis would use the first host instead
		if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "" {
			return "has an addr that is not host:port"
		}
	}
	for _, name := range []string{"dial_timeout", "write_timeout"} {
		if d, err := time.ParseDuration(query.Get(name)); query.Has(name) && (err != nil || d <= 0) {
			return "has a " + name + " that is not a positive duration such as 2s"
		}
	}
	return ""
}

// Redacted returns a URL without its password and without unknown parameters, for error
// messages.
func Redacted(rawURL string) string {
	u, err := url.Parse(rawURL)
	switch {
	case err != nil && !strings.ContainsAny(rawURL, "@?"):
		return rawURL
	case err != nil, u.Opaque != "" && strings.Contains(rawURL, "@"):
		return "?"
	}
	query := u.Query()
	maps.DeleteFunc(query, func(name string, _ []string) bool {
		_, known := urlParameters[name]
		return !known
	})
	u.RawQuery = query.Encode()
	return u.Redacted()
}
