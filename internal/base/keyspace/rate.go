package keyspace

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	"github.com/latchkey-go/latchkey/internal/base/fault"
)

// Rate is how many requests a rate limiter lets through, in the long run and at once.
type Rate struct {
	N     int
	Per   time.Duration
	Burst int
}

// Bounds of a rate.
const (
	shortestPeriod = time.Millisecond
	longestPeriod  = 366 * 24 * time.Hour
	mostRequests   = math.MaxInt32
	longestBacklog = 10 * longestPeriod
)

// Complete returns the rate with its defaults, or an error if it cannot be used.
func (r Rate) Complete() (Rate, error) {
	if r.Burst == 0 {
		r.Burst = r.N
	}
	switch {
	case r.N < 1 || r.N > mostRequests:
		return r, fault.Invalid("a rate of %d requests, want at least 1 and at most %d", r.N, mostRequests)
	case r.Per < shortestPeriod || r.Per > longestPeriod:
		return r, fault.Invalid("the period %v of a rate is not between %v and 366 days", r.Per, shortestPeriod)
	case r.Burst < 1 || r.Burst > mostRequests:
		return r, fault.Invalid("a burst of %d requests, want at least 1 and at most %d", r.Burst, mostRequests)
	case float64(r.Burst)/float64(r.N)*float64(r.Per) > float64(longestBacklog):
		return r, fault.Invalid("a burst of %d requests takes more than ten years to grow back", r.Burst)
	}
	return r, nil
}

// Text returns the rate as lua/rate/read.lua reads it. The period has whole µs: a fraction counts
// as one, so the rate is not exceeded.
func (r Rate) Text() string {
	return fmt.Sprintf("%d/%d/%d", r.N, (r.Per+time.Microsecond-1)/time.Microsecond, r.Burst)
}

// String returns the rate for people, such as 10/1s, or 10/1s burst 20.
func (r Rate) String() string {
	text := fmt.Sprintf("%d/%s", r.N, fault.DurationText(r.Per))
	if r.Burst != r.N && r.Burst != 0 {
		text += fmt.Sprintf(" burst %d", r.Burst)
	}
	return text
}

// LimiterState is what a rate limiter stores.
type LimiterState struct {
	Rate
	Set   bool    // the rate was set for all callers
	Level float64 // of the bucket at the time of the last request
}

var limiterShape = regexp.MustCompile(`^rate (\d{1,10})/(\d{1,14})/(\d{1,10}) (own|set) ([0-9.e+-]+) \d+ \d+$`)

// IsLimiter reports whether a string is a rate limiter.
func IsLimiter(value string) bool {
	_, is := ReadLimiter(value)
	return is
}

// ReadLimiter reads the string of a rate limiter, as lua/rate/read.lua describes it.
func ReadLimiter(value string) (s LimiterState, is bool) {
	found := limiterShape.FindStringSubmatch(value)
	if found == nil {
		return s, false
	}
	n, err1 := strconv.Atoi(found[1])
	micros, err2 := strconv.ParseInt(found[2], 10, 64)
	burst, err3 := strconv.Atoi(found[3])
	level, err4 := strconv.ParseFloat(found[5], 64)
	if err1 != nil || err2 != nil || err3 != nil || err4 != nil || n == 0 || micros == 0 {
		return s, false
	}
	rate := Rate{n, time.Duration(micros) * time.Microsecond, burst}
	return LimiterState{rate, found[4] == "set", level}, true
}

// How long a limiter is kept after all requests have drained: see lua/rate/write.lua.
const (
	limiterKept    = time.Minute
	limiterSetKept = 30 * 24 * time.Hour
)

// Available returns how many requests may go at once when the key has so much time left, which
// tells how long ago the last request was.
func (s LimiterState) Available(ttl time.Duration) int {
	perMicro := float64(s.N) / float64(s.Per.Microseconds())
	kept := limiterKept
	if s.Set {
		kept = limiterSetKept
	}
	drains := math.Ceil(s.Level / perMicro / 1000) // ms
	since := max(drains+float64((kept-ttl)/time.Millisecond), 0)
	level := max(s.Level-since*1000*perMicro, 0)
	return int(math.Floor(float64(s.Burst) - level + 1e-9))
}
