# JavaScript: timers, promises, files, streams, child processes, threads.
cat >all.js <<'END'
const fs = require('fs'), path = require('path'), os = require('os');
const { execSync, spawn } = require('child_process');
const { Worker, isMainThread, parentPort } = require('worker_threads');
const crypto = require('crypto'), zlib = require('zlib'), net = require('net');
if (!isMainThread) {
	parentPort.on('message', n => { parentPort.postMessage(n * n); parentPort.close(); });
} else (async () => {
	console.log([3, 1, 2].sort(), 2 ** 53, 0.1 + 0.2, 10n ** 30n, 'ü'.normalize('NFD').length);
	console.log(JSON.stringify({ a: [1, { b: null }], d: new Date(0) }), /(\d+)-(\d+)/.exec('10-20').slice(1));
	fs.writeFileSync('file', 'line\n'.repeat(1000));
	console.log(fs.statSync('file').size, fs.readFileSync('file', 'utf8').split('\n').length);
	fs.mkdirSync('d/e', { recursive: true });
	await fs.promises.writeFile('d/e/f', 'deep');
	console.log(fs.readdirSync('d'), path.resolve('/a', '../b'), await fs.promises.readFile('d/e/f', 'utf8'));
	try { fs.readFileSync('missing'); } catch (error) { console.log(error.code, error.errno); }
	console.log(crypto.createHash('sha256').update('text').digest('hex'));
	console.log(zlib.gunzipSync(zlib.gzipSync(Buffer.alloc(100000, 'ab'))).length);
	console.log(execSync('echo from a child | tr a-z A-Z').toString().trim());
	const child = spawn('sh', ['-c', 'cat; exit 3']);
	child.stdin.end('through a pipe\n');
	let said = '';
	for await (const piece of child.stdout) said += piece;
	console.log(said.trim(), await new Promise(done => child.exitCode !== null ? done(child.exitCode) : child.on('exit', done)));
	console.log(await new Promise(done => { const worker = new Worker(__filename); worker.on('message', done); worker.postMessage(12); }));
	const order = [];
	setTimeout(() => order.push('timeout'), 5);
	setImmediate(() => order.push('immediate'));
	process.nextTick(() => order.push('tick'));
	Promise.resolve().then(() => order.push('promise'));
	await new Promise(done => setTimeout(done, 30));
	console.log(order.join(' '));
	let lines = 0;
	for await (const line of require('readline').createInterface({ input: fs.createReadStream('file') })) lines++;
	console.log(lines);
	process.on('SIGUSR2', () => { console.log('signal'); process.exit(7); });
	setInterval(() => {}, 1000);
	process.kill(process.pid, 'SIGUSR2');
})();
END
node all.js; echo "status $?"
node -e 'throw new Error("x")' 2>&1 | grep -c Error
node -p '[...Array(5).keys()].map(n => n * n).join()'
echo 'console.log("from the input")' | node
