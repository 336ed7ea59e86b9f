// What scripts share that visit pages with a headless Chromium, and ask axe about them.
import fs from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";

const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"];

// modules: the folder node_modules. Returns the rules that the page breaks.
export async function violations(page, modules) {
	await page.evaluate(fs.readFileSync(path.join(modules, "axe-core/axe.min.js"), "utf8"));
	const found = await page.evaluate((values) => globalThis.axe.run(document, { runOnly: { type: "tag", values }, resultTypes: ["violations"] }), RULES);
	return found.violations;
}

// Prints the results of visit(browser, wanted), a JSON list, for each visit that the file lists.
export async function printVisits(modules, executablePath, file, visit) {
	const { chromium } = createRequire(path.resolve(modules, "../package.json"))("playwright-core");
	const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
	const results = [];
	for (const wanted of JSON.parse(fs.readFileSync(file))) results.push(await visit(browser, wanted));
	await browser.close();
	await new Promise((done) => process.stdout.write(JSON.stringify(results), done));
	process.exit(0);
}
