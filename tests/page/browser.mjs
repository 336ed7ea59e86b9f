// A headless Chromium looks at pages: node browser.mjs MODULES CHROMIUM ADDRESS VISITS.json SHOTS
//
// A visit: path; width and height of the window; dark; drop (files) before anything else; type (a
// line) at the prompt, and expect (a pattern, for a row of the terminal); press (a button's id);
// offline (the network goes when all is kept); keys (what is pressed first, each for what has the
// focus then: its id, or else its element's name, comes in `focus`); wait (what the page notes in
// `times`); axe; shot (a name). Prints a JSON list: for each visit times,
// status, report, rows, bytes, others (addresses of other hosts), violations, errors, answer (ms).
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const [modules, executablePath, address, visits, shots] = process.argv.slice(2);
const require = createRequire(path.resolve(modules, "../package.json"));
const { chromium } = require("playwright-core");
const AXE = fs.readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"];
const LIMIT = 240000;	// milliseconds: the host may be ten times as slow

const rows = () => [...document.querySelectorAll(".xterm-rows > div")].map((row) => row.textContent.trimEnd());

// What comes from here on is noted again.
const forget = (page) => page.evaluate(() => { for (const name of Object.keys(globalThis.times)) delete globalThis.times[name]; });

async function drop(page, files) {
	const data = files.map((name) => [path.basename(name), fs.readFileSync(name).toString("base64")]);
	await page.evaluate((list) => {
		const transfer = new DataTransfer();
		for (const [name, text] of list)
			transfer.items.add(new File([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], name));
		dispatchEvent(new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true }));
	}, data);
}

async function visit(browser, wanted) {
	const page = await browser.newPage({ viewport: { width: wanted.width ?? 1280, height: wanted.height ?? 800 },
		colorScheme: wanted.dark ? "dark" : "light" });
	const result = { bytes: 0, others: [], errors: [] };
	page.on("pageerror", (error) => result.errors.push(error.message));
	page.on("request", (request) => {
		const url = request.url();
		if (!url.startsWith(address) && !/^(blob|data):/.test(url)) result.others.push(url);
	});
	const network = await page.context().newCDPSession(page);
	await network.send("Network.enable");
	network.on("Network.loadingFinished", (event) => { result.bytes += event.encodedDataLength; });
	const noted = (what) => page.waitForFunction((name) => globalThis.times?.[name], what, { timeout: LIMIT });
	try {
		await page.goto(address + wanted.path);
		await noted("prompt");
		result.prompt = await page.evaluate(() => globalThis.times.prompt);
		result.until_prompt = result.bytes;
		if (wanted.offline) {
			await noted("kept");
			await page.context().setOffline(true);
		}
		for (const key of wanted.keys ?? []) {
			await page.keyboard.press(key);
			(result.focus ??= []).push(await page.evaluate(() => document.activeElement.id || document.activeElement.localName));
		}
		if (wanted.drop) {
			await forget(page);
			await drop(page, wanted.drop);
			await page.waitForFunction(() => globalThis.times.started || globalThis.times.refused, null, { timeout: LIMIT });
		}
		if (wanted.type) {
			await noted("prompt");
			if (!wanted.keys) await page.locator("#terminal textarea").focus();
			const before = performance.now();
			await page.keyboard.type(`${wanted.type}\n`);
			if (wanted.expect)
				await page.waitForFunction(([pattern, source]) => {
					const shown = new Function(`return (${source})()`)();
					return shown.some((row) => new RegExp(pattern).test(row));
				}, [wanted.expect, String(rows)], { timeout: LIMIT });
			result.answer = Math.round(performance.now() - before);
		}
		if (wanted.press) {
			await forget(page);
			await page.locator(`#${wanted.press}`).click();
		}
		if (wanted.wait) await noted(wanted.wait);
		if (wanted.axe) {
			await page.evaluate(AXE);
			const found = await page.evaluate((values) => globalThis.axe.run(document, { runOnly: { type: "tag", values } }), RULES);
			result.violations = found.violations.map((each) => `${each.id}: ${each.nodes[0].target.join(" ")}`);
		}
	} catch (error) {
		result.failure = error.message.split("\n")[0];
	}
	Object.assign(result, await page.evaluate(() => ({
		times: globalThis.times, language: document.documentElement.lang,
		status: document.getElementById("status")?.textContent, report: document.getElementById("report")?.textContent,
		overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
	})), { rows: await page.evaluate(rows) });
	if (wanted.shot) await page.screenshot({ path: path.join(shots, `${wanted.shot}.png`), fullPage: true });
	await page.close();
	return result;
}

const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const results = [];
for (const wanted of JSON.parse(fs.readFileSync(visits))) results.push(await visit(browser, wanted));
await browser.close();
await new Promise((done) => process.stdout.write(JSON.stringify(results), done));
process.exit(0);
