package main

import (
	"context"
	"errors"
	"time"
)

type redisson struct{}

func (redisson) Name() string  { return "redisson" }
func (redisson) About() string { return "Redisson" }
func (redisson) Open(context.Context, string, time.Duration) (Client, error) {
	return nil, errors.New("redisson runs its workloads itself")
}
func buildRedisson(context.Context) (string, error) { return "", errors.New("not yet") }
