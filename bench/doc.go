// Command bench compares lock libraries for Redis: raw rueidis as the floor, Latchkey, redsync,
// redislock, rueidislock, and Redisson if Java and Maven are in PATH. It starts its own Redis
// server, and writes tables and plots. See README.md.
package main
