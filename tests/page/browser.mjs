// A headless Chromium looks at pages: node browser.mjs MODULES CHROMIUM ADDRESS VISITS.json SHOTS
//
// A visit: path; width and height of the window; dark; drop (files) before anything else; type (a
// line) at the prompt, and expect (a pattern, for a row of the terminal); press (a button's id);
// offline (the network goes when all is kept); keys (what is pressed first, each for what has the
// focus then: its id, or else its element's name, comes in `focus`); wait (what the page notes in
// `times`); axe; shot (a name). Prints a JSON list: for each visit times,
// status, report, rows, bytes, others (addresses of other hosts), violations, errors, answer (ms).
import fs from "node:fs";
import path from "node:path";
import { printVisits, violations } from "../support/visits.mjs";

const [modules, executablePath, address, visits, shots] = process.argv.slice(2);
const LIMIT = 240000;	// milliseconds: the host may be ten times as slow

const rows = () => [...document.querySelectorAll(".xterm-rows > div")].map((row) => row.textContent.trimEnd());

// What the page has asked for since its prompt was there: to have it when the network goes.
const since_prompt = () => performance.getEntriesByType("resource")
	.filter((entry) => entry.startTime >= performance.getEntriesByName("prompt")[0].startTime).map((entry) => entry.name);

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
	const addresses = {}, sizes = {};
	network.on("Network.requestWillBeSent", (event) => { addresses[event.requestId] = event.request.url; });
	network.on("Network.loadingFinished", (event) => {
		result.bytes += event.encodedDataLength;
		sizes[event.requestId] = event.encodedDataLength;
	});
	const noted = (what) => page.waitForFunction((name) => globalThis.times?.[name], what, { timeout: LIMIT });
	try {
		await page.goto(address + wanted.path);
		await noted("prompt");
		result.prompt = await page.evaluate(() => globalThis.times.prompt);
		await noted("kept");
		const loaded = Object.keys(sizes).map((id) => addresses[id]).filter((each) => each.startsWith(address));
		await page.waitForFunction((names) => names.every((name) => performance.getEntriesByName(name).length), loaded, { timeout: LIMIT });
		const late = new Set(await page.evaluate(since_prompt));
		result.until_prompt = Object.entries(sizes).reduce((sum, [id, size]) => sum + (late.has(addresses[id]) ? 0 : size), 0);
		if (wanted.offline) await page.context().setOffline(true);
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
			const found = await violations(page, modules);
			result.violations = found.map((each) => `${each.id}: ${each.nodes[0].target.join(" ")}`);
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

await printVisits(modules, executablePath, visits, visit);
