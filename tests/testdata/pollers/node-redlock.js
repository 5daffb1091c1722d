'use strict';
// Takes and releases a lock of node-redlock in a tight loop. See pollers_test.go.

const fs = require('fs');
const Redis = require('ioredis');
const Redlock = require('redlock');

const [port, name, hold, door] = process.argv.slice(2);
const client = new Redis(Number(port));
const redlock = new Redlock([client], { retryCount: -1 });
let over = false;

async function loop() {
  while (!over) {
    const start = process.hrtime.bigint();
    const lock = await redlock.lock(name, 30000);
    const waited = (process.hrtime.bigint() - start) / 1000n;
    fs.closeSync(fs.openSync(door, 'wx')); // fails if somebody else is inside
    if (hold > 0) await new Promise((done) => setTimeout(done, hold));
    console.log(`${waited}`);
    fs.unlinkSync(door);
    await lock.unlock();
  }
  client.disconnect();
}

client.once('ready', () => console.log('ready'));
process.stdin.once('data', loop);
process.stdin.once('end', () => { over = true; });
