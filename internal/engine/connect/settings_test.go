package connect_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"reflect"
	"testing"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey"
	"github.com/latchkey-go/latchkey/internal/engine/connect"
)

// openFields says what Open does with each field of rueidis.ClientOption. A field that a new
// version adds needs a decision.
var openFields = map[string]string{
	"TLSConfig": "kept", "DialCtxFn": "kept", "AuthCredentialsFn": "kept", "RetryDelay": "kept", "Username": "kept",
	"Password": "kept", "ClientName": "kept", "ClientSetInfo": "kept", "InitAddress": "kept", "SelectDB": "kept",
	"ReadBufferEachConn": "kept", "WriteBufferEachConn": "kept", "BlockingPoolCleanup": "kept",
	"BlockingPoolMinSize": "kept", "BlockingPipeline": "kept", "MaxFlushDelay": "kept", "DisableTCPNoDelay": "kept",
	"ShuffleInit": "kept", "ClientNoTouch": "kept", "DisableRetry": "kept", "AlwaysRESP2": "kept", "ClientNoEvict": "kept",
	"EnableReplicaAZInfo": "kept", "AZFromInfo": "kept",
	"Dialer": "bounded", "Sentinel": "bounded", "ClusterOption": "bounded", "ConnWriteTimeout": "bounded",
	"RingScaleEachConn": "bounded", "BlockingPoolSize": "bounded",
	"DisableCache": "set", "AlwaysPipelining": "set",
	"DialFn": "refused", "NewCacheStoreFn": "refused", "OnInvalidations": "refused", "ClientTrackingOptions": "refused",
	"CacheSizeEachConn": "refused", "SendToReplicas": "refused", "ReplicaSelector": "refused", "ReadNodeSelector": "refused",
	"ReplicaOnly": "refused", "Standalone": "refused", "PipelineMultiplex": "refused", "DisableAutoPipelining": "refused",
	"ConnLifetime": "refused", "ForceSingleClient": "refused",
}

func TestOpen_decides_on_every_field(t *testing.T) {
	kind := reflect.TypeFor[rueidis.ClientOption]()
	for i := range kind.NumField() {
		field := kind.Field(i)
		t.Run(field.Name, func(t *testing.T) {
			fate, known := openFields[field.Name]
			require.True(t, known, "a field that Open does not know")
			settings := rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}}
			fill(reflect.ValueOf(&settings).Elem().Field(i))
			_, err := connect.Completed(settings)
			if fate != "refused" {
				require.NotErrorIs(t, err, latchkey.ErrInvalid)
				return
			}
			require.ErrorIs(t, err, latchkey.ErrInvalid)
			require.ErrorContains(t, err, "ClientOption."+field.Name)
		})
	}
}

// fill sets a value to something other than zero.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(64)
	case reflect.String:
		v.SetString("127.0.0.1:1")
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		if v.Type().Elem().Kind() == reflect.String {
			v.Index(0).SetString("127.0.0.1:1")
			v.Index(1).SetString("127.0.0.1:2")
		}
	case reflect.Func:
		v.Set(reflect.MakeFunc(v.Type(), func([]reflect.Value) (out []reflect.Value) {
			for i := range v.Type().NumOut() {
				out = append(out, reflect.Zero(v.Type().Out(i)))
			}
			return out
		}))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() && v.Type() != reflect.TypeFor[net.Dialer]() {
				fill(v.Field(i))
			}
		}
	}
}

// A value out of bounds is refused, and the error names the field.
func TestOpen_names_the_field_that_is_out_of_bounds(t *testing.T) {
	for field, set := range map[string]func(*rueidis.ClientOption){
		"InitAddress":                         func(o *rueidis.ClientOption) { o.InitAddress = nil },
		"RingScaleEachConn":                   func(o *rueidis.ClientOption) { o.RingScaleEachConn = 8 },
		"BlockingPoolSize":                    func(o *rueidis.ClientOption) { o.BlockingPoolSize = 10 },
		"AuthCredentialsFn":                   func(o *rueidis.ClientOption) { fill(reflect.ValueOf(&o.AuthCredentialsFn).Elem()); o.Password = "p" },
		"Dialer.Timeout":                      func(o *rueidis.ClientOption) { o.Dialer.Timeout = -1 },
		"Dialer.KeepAlive":                    func(o *rueidis.ClientOption) { o.Dialer.KeepAlive = -1 },
		"ConnWriteTimeout":                    func(o *rueidis.ClientOption) { o.ConnWriteTimeout = -1 },
		"Sentinel.TopologyRefreshInterval":    func(o *rueidis.ClientOption) { o.Sentinel.TopologyRefreshInterval = -1 },
		"ClusterOption.MaxMovedRedirections":  func(o *rueidis.ClientOption) { o.ClusterOption.MaxMovedRedirections = -1 },
		"ClusterOption.ShardsRefreshInterval": func(o *rueidis.ClientOption) { o.ClusterOption.ShardsRefreshInterval = -1 },
		"Standalone.ReplicaAddress":           func(o *rueidis.ClientOption) { o.Standalone.ReplicaAddress = []string{"h:1"} },
	} {
		t.Run(field, func(t *testing.T) {
			settings := rueidis.ClientOption{InitAddress: []string{"127.0.0.1:1"}}
			set(&settings)
			_, err := latchkey.Open(context.Background(), settings, latchkey.Options{})
			require.ErrorIs(t, err, latchkey.ErrInvalid)
			require.ErrorContains(t, err, "ClientOption."+field)
		})
	}
}

// An address without a port, or with one that does not exist, is an error before anything is
// dialed. What an address is with a dialer or a mapper of the program, only that knows.
func TestOpen_refuses_an_address_that_cannot_be_dialed(t *testing.T) {
	open := func(settings rueidis.ClientOption, options latchkey.Options) error {
		options.LazyConnect = true
		client, err := latchkey.Open(t.Context(), settings, options)
		if err == nil {
			assert.NoError(t, client.Close(t.Context()))
		}
		return err
	}
	for address, valid := range map[string]bool{
		"localhost": false, "localhost:": false, "localhost:70000": false, "[::1]": false, "[::1]:0": false,
		"localhost:redis": true, ":6379": true, "[::1]:65535": true,
	} {
		settings := rueidis.ClientOption{InitAddress: []string{address}}
		err := open(settings, latchkey.Options{})
		assert.Equal(t, !valid, errors.Is(err, latchkey.ErrInvalid), address)
		mapper := func(string) string { return "127.0.0.1:1" }
		assert.NoError(t, open(settings, latchkey.Options{Tuning: latchkey.Tuning{AddressMapper: mapper}}), address)
		settings.DialCtxFn = func(context.Context, string, *net.Dialer, *tls.Config) (net.Conn, error) {
			return nil, net.ErrClosed
		}
		assert.NoError(t, open(settings, latchkey.Options{}), address)
	}
}
