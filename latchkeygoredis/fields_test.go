package latchkeygoredis_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/latchkey-go/latchkey/latchkeygoredis"
)

// Each setting of go-redis matters and is in the package documentation, or is in its list of
// settings that are ignored. So a setting that go-redis adds fails this test, until somebody has
// decided.
func TestEverySettingIsDecided(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	_, sections, _ := strings.Cut(string(text), "// # Converted\n")
	decided, ignored, found := strings.Cut(sections, "// # Ignored\n")
	require.True(t, found)
	for _, of := range [][]any{
		{redis.Options{}},
		{redis.ClusterOptions{}},
		{redis.FailoverOptions{MasterName: "main"}},
		// What a field of these means depends on others: it matters if it does for one of them.
		{redis.UniversalOptions{Addrs: []string{"a:1"}, DB: 3}, redis.UniversalOptions{MasterName: "main"}},
	} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(of[0])) {
			if !field.IsExported() {
				continue
			}
			word := regexp.MustCompile(`\b` + field.Name + `\b`)
			matters := slices.ContainsFunc(of, func(base any) bool { return changesAnything(t, base, field) })
			assert.Equal(t, matters, word.MatchString(decided), "%T.%s is converted or refused", of[0], field.Name)
			assert.Equal(t, !matters, word.MatchString(ignored), "%T.%s is ignored", of[0], field.Name)
		}
	}
}

// changesAnything reports whether a field of settings changes the result of the conversion, which
// may be an error.
func changesAnything(t *testing.T, base any, field reflect.StructField) bool {
	t.Helper()
	before, err := convert(base)
	require.NoError(t, err)
	changed := reflect.New(reflect.TypeOf(base)).Elem()
	changed.Set(reflect.ValueOf(base))
	changed.FieldByIndex(field.Index).Set(some(t, field))
	after, err := convert(changed.Interface())
	return err != nil || !assert.ObjectsAreEqual(before, after)
}

func convert(settings any) (rueidis.ClientOption, error) {
	switch o := settings.(type) {
	case redis.Options:
		return latchkeygoredis.ClientOption(&o)
	case redis.ClusterOptions:
		return latchkeygoredis.ClientOption(&o)
	case redis.FailoverOptions:
		return latchkeygoredis.ClientOption(&o)
	case redis.UniversalOptions:
		return latchkeygoredis.ClientOption(&o)
	}
	panic(settings)
}

// some returns a value for a field that is neither zero nor a default.
func some(t *testing.T, field reflect.StructField) reflect.Value {
	t.Helper()
	value := reflect.New(field.Type).Elem()
	switch field.Type.Kind() {
	case reflect.Bool:
		value.SetBool(true)
	case reflect.Int, reflect.Int64:
		value.Set(reflect.ValueOf(2).Convert(field.Type))
	case reflect.String:
		value.SetString("unix")
	case reflect.Slice:
		value = reflect.ValueOf([]string{"b:2", "c:3"})
	case reflect.Pointer:
		value = reflect.New(field.Type.Elem())
	case reflect.Func:
		value = reflect.MakeFunc(field.Type, func([]reflect.Value) []reflect.Value { panic("not called") })
	case reflect.Interface: // of the others, the package knows none
		if stream := reflect.ValueOf(new(provider)); stream.Type().Implements(field.Type) {
			return stream
		}
	default:
		require.Fail(t, "the test has no value for this field", field.Name)
	}
	return value
}
